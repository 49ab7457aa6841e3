import type { BackendMessage } from "#backends/backend.ts";
import type { Store } from "#store/store.ts";

/** A message from before a session began. Its caller sends it with the message that starts or continues the session. */
export type EarlierMessage = { role: "system" | "user" | "assistant"; text: string };

type WithContext = { context: string | undefined };

/** Instructions are sent to the backend again if none of this many messages has them. */
const INSTRUCTED_WITHIN = 50;
/** The most text of earlier messages that is stored when a session begins that its caller will continue: compactions do not count this text. */
const BEGINNING_CHARACTERS = 64 * 1024;

/** Earlier messages are stored as the context of the message that they came with. Other callers send an object; a list is always this. */
export function earlierAsContext(earlier: readonly EarlierMessage[]): string | undefined {
  return earlier.length === 0 ? undefined : JSON.stringify(earlier);
}

/**
 * The context for the next message of a session. If the session exists, it has the conversation: only instructions that differ from its
 * last ones are added. Without a `sessionId` the session is new and the only one of its conversation: it gets all messages.
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

/** The instructions, and the newest of the other messages that fit, in their order. */
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

/** The last instructions of callers in a session, without the agent's. */
async function readInstructions(store: Store, sessionId: string): Promise<EarlierMessage[]> {
  const newest = await store.readMessages(sessionId, { before: Infinity, limit: INSTRUCTED_WITHIN });
  const last = newest.find(hasInstructions);
  if (!last) return [];
  return earlierOf(last).flatMap(({ instructions, text }) => (instructions ? [{ role: "system", text }] : []));
}

/** True if a message came with instructions of its caller: they replace the earlier ones. */
export function hasInstructions(message: WithContext): boolean {
  return hasEarlier(message) && earlierOf(message).some(({ instructions }) => instructions);
}

/** The earlier messages that came with a message; nearly always none. */
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
const LIST = "[".charCodeAt(0);
