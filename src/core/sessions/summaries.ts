import type { Backend, BackendMessage, TellUsed } from "#backends/backend.ts";
import { orAborted } from "#kit/abort.ts";
import { yieldToOthers } from "#kit/yield.ts";
import type { Compacted, CompactionTask, Message, SessionSize, Store, Turn } from "#store/store.ts";
import { inTurnOrder, readContext, summaryMessage, toBackend } from "./history.ts";

/** The most characters of one call to a backend. A longer conversation is summarised in parts, each together with the summary of the previous parts. */
const PART_CHARACTERS = 16 * 1024 * 1024;
/** The most characters of a summary. A longer one is an error of the backend. */
const SUMMARY_LIMIT = 4 * 1024 * 1024;

/** Lets the backend write the summary. */
export type Compact = (signal: AbortSignal, used: TellUsed) => Promise<Compacted>;

/** Reads the session and plans its compaction. `compact` writes the summary; it is undefined if there is nothing to compact. */
export async function planCompaction(
  store: Store,
  backend: Backend,
  { sessionId, seq }: Pick<Turn, "sessionId" | "seq">,
  request: CompactionTask,
): Promise<{ before: SessionSize; compact: Compact | undefined }> {
  const count = (text: string) => backend.countTokens?.(text) ?? Math.ceil(text.length / 4);
  const countMessage = (message: Message) => toBackend(message).reduce((sum, { text }) => sum + count(text), 0);
  const [earlier, all] = await Promise.all([store.readSummary(sessionId), readContext(store, sessionId)]);
  // The turns behind this compaction in the queue have not run yet, so their messages have a greater `seq`.
  const isBehind = (message: Message) => message.role !== "assistant" && message.seq > seq;
  const messages = inTurnOrder(all.filter((message) => !isBehind(message)));
  const sizeOf = (retained: readonly Message[], summary: string | undefined): SessionSize => ({
    messages: retained.length,
    tokens: retained.reduce((sum, message) => sum + countMessage(message), summary === undefined ? 0 : count(summary)),
  });
  const before = sizeOf(messages, earlier?.text);
  const from = messages.length - countRetained(messages, request, countMessage);
  if (from <= 0) return { before, compact: undefined };

  const compacted = messages.slice(0, from);
  const retained = messages.slice(from);
  const compact: Compact = async (signal, used) => {
    const summarised = compacted.flatMap(toBackend);
    if (earlier) summarised.unshift(summaryMessage(earlier));
    const summary = await summarise((messages) => ask(backend, messages, signal, used), summarised);
    return {
      summary,
      outside: summarised.some(({ outside }) => outside),
      through: all.reduce((last, message) => Math.max(last, message.seq), 0),
      except: [...retained, ...all.filter(isBehind)].map((message) => message.seq),
      before,
      after: sizeOf(retained, summary),
      // Computed as `contextBytes` in the store: without the messages from before the session.
      freedBytes: bytesOf(compacted) + bytesOf(earlier ? [earlier] : []) - bytesOf([{ text: summary }]),
    };
  };
  return { before, compact };
}

function bytesOf(messages: readonly { text: string }[]): number {
  return messages.reduce((sum, { text }) => sum + Buffer.byteLength(text), 0);
}

function countRetained(
  messages: readonly Message[],
  request: CompactionTask,
  count: (message: Message) => number,
): number {
  let left = request.keepTokens ?? Infinity;
  let retained = 0;
  for (const message of messages.toReversed().slice(0, request.keep)) {
    if (left !== Infinity) left -= count(message);
    if (left < 0) break;
    retained++;
  }
  return retained;
}

async function summarise(
  write: (messages: readonly BackendMessage[]) => Promise<string>,
  messages: readonly BackendMessage[],
): Promise<string> {
  let part: BackendMessage[] = [];
  let characters = 0;
  for (const message of messages) {
    if (part.length > 0 && characters + message.text.length > PART_CHARACTERS) {
      const text = await write(part);
      part = [summaryMessage({ text, outside: part.some(({ outside }) => outside) })];
      characters = text.length;
    }
    part.push(message);
    characters += message.text.length;
  }
  return await write(part);
}

/** Requests a summary. Rejects when `signal` is aborted, even if the backend does not stop. */
async function ask(
  backend: Backend,
  messages: readonly BackendMessage[],
  signal: AbortSignal,
  used: TellUsed,
): Promise<string> {
  signal.throwIfAborted();
  const text: unknown = await orAborted(backend.summarise(messages, signal, used), signal).catch(async (error) => {
    // A backend that obeys the signal reports its usage before it stops: give it one tick.
    if (signal.aborted) await yieldToOthers();
    throw error;
  });
  if (typeof text !== "string") throw new TypeError("the backend's summary is not a text");
  if (text.length > SUMMARY_LIMIT) throw new TypeError("the backend's summary is longer than 4 MiB");
  return text;
}

export function reasonFor(messages: number, { keep }: CompactionTask): string {
  return messages === 0
    ? "It has no messages that are not compacted."
    : `It has ${messages} ${messages === 1 ? "message" : "messages"}, and the last ${keep} are kept. Send a smaller \`keep\`.`;
}
