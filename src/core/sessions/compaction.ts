import type { Backend, BackendMessage, TellUsed } from "#backends/backend.ts";
import type { Compacted, CompactionPlace, Message, SessionSize, Store } from "#store/store.ts";
import { inTurnOrder, readContext, summaryMessage, toBackend } from "./history.ts";

/** What a backend is given to summarise at once; of more, it summarises part after part, each with the summary of those before. */
const PART_CHARACTERS = 16 * 1024 * 1024;
/** A summary that is longer is a backend gone wrong. */
const SUMMARY_LIMIT = 4 * 1024 * 1024;

export type CompactionWish = {
  keep: number;
  /** Keeps fewer where the last ones together have more tokens. */
  keepTokens?: number;
};

/** What is to be compacted, and how much the session is before. `compacted` is undefined where it is short enough already. */
export type CompactionPlan = {
  before: SessionSize;
  compact: ((signal: AbortSignal, used: TellUsed) => Promise<Compacted>) | undefined;
};

/** Looks at a session whose queue the compaction is first of. */
export const planCompaction = async (
  store: Store,
  backend: Backend,
  { claim: { sessionId }, seq }: CompactionPlace,
  wish: CompactionWish,
): Promise<CompactionPlan> => {
  const count = (text: string) => backend.countTokens?.(text) ?? Math.ceil(text.length / 4);
  const countMessage = (message: Message) => toBackend(message).reduce((sum, { text }) => sum + count(text), 0);
  const [earlier, all] = await Promise.all([store.readSummary(sessionId), readContext(store, sessionId)]);
  // Turns behind this place have not run: of them there are only messages that came after it.
  const isBehind = (message: Message) => message.role !== "assistant" && message.seq > seq;
  const messages = inTurnOrder(all.filter((message) => !isBehind(message)));
  const sizeOf = (kept: readonly Message[], summary: string | undefined): SessionSize => ({
    messages: kept.length,
    tokens: kept.reduce((sum, message) => sum + countMessage(message), summary === undefined ? 0 : count(summary)),
  });
  const before = sizeOf(messages, earlier?.text);
  const from = messages.length - keptOf(messages, wish, countMessage);
  if (from <= 0) return { before, compact: undefined };

  const gone = messages.slice(0, from);
  const kept = messages.slice(from);
  const compact = async (signal: AbortSignal, used: TellUsed): Promise<Compacted> => {
    const told = gone.flatMap(toBackend);
    if (earlier) told.unshift(summaryMessage(earlier));
    const summary = await summarise((messages) => ask(backend, messages, signal, used), told);
    return {
      summary,
      outside: told.some(({ outside }) => outside),
      through: all.reduce((last, message) => Math.max(last, message.seq), 0),
      except: [...kept, ...all.filter(isBehind)].map((message) => message.seq),
      before,
      after: sizeOf(kept, summary),
      // Of what an engine counts: of what was said before a session began, it does not.
      freedBytes: bytesOf(gone) + bytesOf(earlier ? [earlier] : []) - bytesOf([{ text: summary }]),
    };
  };
  return { before, compact };
};

const bytesOf = (told: readonly { text: string }[]): number =>
  told.reduce((sum, { text }) => sum + Buffer.byteLength(text), 0);

const keptOf = (messages: readonly Message[], wish: CompactionWish, count: (message: Message) => number): number => {
  let left = wish.keepTokens ?? Infinity;
  let kept = 0;
  while (kept < messages.length && kept < wish.keep) {
    left -= left === Infinity ? 0 : count(messages[messages.length - 1 - kept] as Message);
    if (left < 0) break;
    kept++;
  }
  return kept;
};

const summarise = async (
  write: (messages: readonly BackendMessage[]) => Promise<string>,
  messages: readonly BackendMessage[],
): Promise<string> => {
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
};

/** Asks for a summary, and leaves a backend behind that does not stop when `signal` says so. */
const ask = (
  backend: Backend,
  messages: readonly BackendMessage[],
  signal: AbortSignal,
  used: TellUsed,
): Promise<string> =>
  new Promise((resolve, reject) => {
    // One that stops at the signal has told by then what it used.
    const leave = () => setImmediate(() => reject(signal.reason));
    if (signal.aborted) return leave();
    signal.addEventListener("abort", leave, { once: true });
    Promise.resolve()
      .then(() => backend.summarise(messages, signal, used))
      .then((text) => {
        if (typeof text !== "string") throw new TypeError("the backend's summary is no text");
        if (text.length > SUMMARY_LIMIT) throw new TypeError("the backend's summary is longer than 4 MiB");
        resolve(text);
      })
      .catch(reject)
      .finally(() => signal.removeEventListener("abort", leave));
  });
