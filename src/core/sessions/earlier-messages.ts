import type { BackendMessage } from "#backends/backend.ts";
import type { Store } from "#store/store.ts";

/** A message of a conversation from before its session began. A caller sends it together with the message for the agent. */
export type EarlierMessage = { role: "system" | "user" | "assistant"; text: string };

type WithContext = { context: string | undefined };

/** The number of last messages that are searched for instructions. If none of them has any, the instructions are added again. */
const INSTRUCTED_WITHIN = 50;
/** The most characters of earlier messages that are stored when a named session begins. The limit is low, because compactions do not count this text. */
const BEGINNING_CHARACTERS = 64 * 1024;

/** Encodes earlier messages as the context of the message that they were sent with. Every other context is an object, so a list is recognised. */
export function earlierAsContext(earlier: readonly EarlierMessage[]): string | undefined {
  return earlier.length === 0 ? undefined : JSON.stringify(earlier);
}

/**
 * The context for the next message of a session. An existing session already has the conversation, so only instructions are added, and only if
 * they differ from its last ones. Without a `sessionId` the session is new, and all earlier messages are added.
 */
export async function contextForSession(
  store: Store,
  sessionId: string | undefined,
  earlier: readonly EarlierMessage[],
): Promise<string | undefined> {
  if (earlier.length === 0) return undefined;
  if (sessionId === undefined) return earlierAsContext(earlier);
  if (!(await store.getSession(sessionId))) return earlierAsContext(beginningOf(earlier));
  const instructions = beginningOf(earlier.filter(isInstruction));
  if (instructions.length === 0) return undefined;
  const wanted = earlierAsContext(instructions);
  return wanted === earlierAsContext(await readInstructions(store, sessionId)) ? undefined : wanted;
}

/** The instructions and the newest other messages that fit into the limit, in the original order. */
function beginningOf(earlier: readonly EarlierMessage[]): EarlierMessage[] {
  const others = earlier.filter((message) => !isInstruction(message)).reverse();
  const fitting = new Set<EarlierMessage>();
  let left = BEGINNING_CHARACTERS;
  for (const message of [...earlier.filter(isInstruction), ...others]) {
    left -= message.text.length;
    if (left < 0) break;
    fitting.add(message);
  }
  return earlier.filter((message) => fitting.has(message));
}

function isInstruction({ role }: EarlierMessage): boolean {
  return role === "system";
}

/** The last instructions that a caller sent in a session. The agent's own instructions are not included. */
async function readInstructions(store: Store, sessionId: string): Promise<EarlierMessage[]> {
  const newest = await store.readMessages(sessionId, { before: Infinity, limit: INSTRUCTED_WITHIN });
  const last = newest.find(hasInstructions);
  if (!last) return [];
  return earlierOf(last).flatMap(({ instructions, text }) => (instructions ? [{ role: "system", text }] : []));
}

/** True if the caller sent instructions with this message. They replace all earlier ones. */
export function hasInstructions(message: WithContext): boolean {
  return hasEarlier(message) && earlierOf(message).some(({ instructions }) => instructions);
}

/** The earlier messages that were sent with a message. */
export function earlierOf(message: WithContext): readonly BackendMessage[] {
  return hasEarlier(message) ? (JSON.parse(message.context as string) as EarlierMessage[]).map(toBackend) : NONE;
}

function toBackend({ role, text }: EarlierMessage): BackendMessage {
  return role === "system" ? { role, text, outside: false, instructions: true } : { role, text, outside: false };
}
const NONE: readonly BackendMessage[] = [];

/** The message without its earlier messages, which backends get separately. */
export function withoutEarlier<M extends WithContext>(message: M): M {
  return hasEarlier(message) ? { ...message, context: undefined } : message;
}

function hasEarlier({ context }: WithContext): boolean {
  return context !== undefined && context.charCodeAt(0) === LIST;
}
/** The first character of a stored list. */
const LIST = "[".charCodeAt(0);
