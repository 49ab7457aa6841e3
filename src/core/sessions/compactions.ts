import type { Backend, BackendMessage, TellUsed } from "#backends/backend.ts";
import { type Agent, countedModel, labelOfModel } from "#core/agents/agents.ts";
import type { CoreParts } from "#core/parts.ts";
import { type Lease, leaseOfClaims, Worker } from "#core/worker.ts";
import type { SessionCompaction } from "#generated/rpc-types.ts";
import { orAborted } from "#kit/abort.ts";
import { BackendError, GatewayError } from "#kit/errors.ts";
import { newId } from "#kit/ids.ts";
import { addUsage, modelNamed, NO_USAGE, usageOf } from "#kit/usages.ts";
import { yieldToOthers } from "#kit/yield.ts";
import type {
  Claim,
  Compacted,
  CompactionPlace,
  Entry,
  Message,
  SessionRef,
  SessionSize,
  Store,
  Surface,
} from "#store/store.ts";
import { inTurnOrder, readContext, summaryMessage, toBackend } from "./history.ts";
import { isTurnEnd } from "./journal.ts";
import { sessionNotFound } from "./stored-sessions.ts";

/** The most summaries that an agent writes concurrently. Summaries are not turns, so the agent's concurrency limit does not apply. */
const AT_ONCE = 8;
/** The number of messages that an automatic compaction keeps. */
const KEEP = 20;
/** The approximate number of bytes per token. Whether a session is due is estimated from its bytes; its tokens are counted only then. */
const BYTES_PER_TOKEN = 4;
/** The share of a model's context that is reserved for the conversation. The rest is for instructions, tools and the reply. */
const CONTEXT_SHARE = 0.8;
/** After a compaction that did not free enough, the session must grow by this factor before the next one. */
const GROWTH = 1.25;

/** The most characters of one call to a backend. A longer conversation is summarised in parts, each together with the summary of the previous parts. */
const PART_CHARACTERS = 16 * 1024 * 1024;
/** The most characters of a summary. A longer one is an error of the backend. */
const SUMMARY_LIMIT = 4 * 1024 * 1024;

/** A compaction that is queued or about to be. `begin` is called when it is the first in its session's queue. */
type Queued = { sessionId: string; stop: AbortController; begin: () => void };
/** A compaction with a place in its session's queue. It leaves the queue when `done` is settled. */
type Placed = { claim: Claim; stop: AbortController; done: Promise<unknown> };

type CompactionRequest = {
  keep: number;
  /** The most tokens of the kept messages: if they have more, fewer are kept. */
  keepTokens?: number | undefined;
  /** The surface and the caller to which the usage is charged. */
  payer: { surface: Surface; caller: string };
};
const AUTOMATIC: CompactionRequest["payer"] = { surface: "heartbeat", caller: "compaction" };

/** Lets the backend write the summary. */
type Compact = (signal: AbortSignal, used: TellUsed) => Promise<Compacted>;

/** Compacts sessions. A compaction waits in its session's queue, and runs when the turns before it have ended. */
export class Compactions {
  readonly #parts: CoreParts;
  readonly #lease: Lease<Placed>;
  readonly #worker: Worker<Placed>;
  readonly #queued = new Map<string, Queued>();
  /** Summaries that are being written, by agent. */
  readonly #writing = new Map<string, Set<Promise<unknown>>>();
  /** The sizes in bytes that sessions must exceed before their next automatic compaction. Infinity while one is running. */
  readonly #pausedUntil = new Map<string, number>();
  #isStopped = false;

  constructor(parts: CoreParts) {
    const { store, clock, events } = parts;
    this.#parts = parts;
    this.#lease = leaseOfClaims<Placed>(store);
    this.#worker = new Worker<Placed>({
      store,
      clock,
      events,
      name: "compactions",
      lease: this.#lease,
      keyOf: ({ claim }) => claim.turnId,
      run: async ({ done }) => void (await done.catch(() => {})),
      giveBack: ({ stop }) => stop.abort(lostPlace()),
    });
  }

  /** The store's watcher calls these. */
  readonly watcher = {
    entries: (session: SessionRef, entries: readonly Entry[]): void => {
      const limit = this.#dueAt(session.agent) * BYTES_PER_TOKEN;
      if (limit === 0 || session.contextBytes <= limit || this.#isStopped || !entries.some(isTurnEnd)) return;
      if (session.contextBytes <= (this.#pausedUntil.get(session.sessionId) ?? 0)) return;
      this.#pausedUntil.set(session.sessionId, Infinity);
      const { sessionId, agent, ordinal, contextBytes } = session;
      // Not now: the store must finish notifying its watchers first.
      void this.#parts.inBackground(() => this.#shorten({ sessionId, agent, ordinal, contextBytes }));
    },
    sessionDeleted: ({ sessionId }: SessionRef): void => {
      this.#pausedUntil.delete(sessionId);
      this.#abort((one) => one.sessionId === sessionId, sessionNotFound(sessionId));
    },
    compaction: (compactionId: string): void => this.#queued.get(compactionId)?.begin(),
  };

  /**
   * Waits for the turns in the session's queue, then replaces all messages except the last `keep` with a summary. Resolves when the summary is
   * stored. If it fails, the session is unchanged.
   */
  compact({ sessionId, keep }: { sessionId: string; keep: number }, caller: string): Promise<SessionCompaction> {
    return this.#run(sessionId, { keep, payer: { surface: "rpc", caller } });
  }

  /** Compacts a full session if automatic compaction is on. Returns true if messages were replaced. */
  async makeRoom(sessionId: string): Promise<boolean> {
    return this.#parts.settings().compactAt > 0 && (await this.#runAutomatically(sessionId));
  }

  /** Cancels the waiting and running compactions, and starts no more. The turns behind them in the queue can then run. */
  [Symbol.dispose](): void {
    this.#isStopped = true;
    this.#abort(() => true, shuttingDown());
    void this.#worker.drain({ ms: 0 });
  }

  #abort(matches: (one: Queued) => boolean, error: GatewayError): void {
    for (const one of this.#queued.values()) if (matches(one)) one.stop.abort(error);
  }

  /** Queues a compaction in the session, and runs it when it is the first in the queue. */
  async #run(sessionId: string, request: CompactionRequest): Promise<SessionCompaction> {
    if (this.#isStopped) throw shuttingDown();
    const { store, clock, node, settings } = this.#parts;
    const now = clock.now();
    const compactionId = newId("cmp", now);
    const stop = new AbortController();
    let begin = () => {};
    const begun = new Promise<void>((resolve) => {
      begin = resolve;
    });
    this.#queued.set(compactionId, { sessionId, stop, begin });
    try {
      const limits = settings().limits.store;
      const order = { now, compactionId, sessionId, node, leaseMs: this.#lease.ms, limits };
      const place = await store.queueCompaction(order);
      const done = this.#runInPlace(place, request, begun, stop);
      this.#worker.begin({ claim: place.claim, stop, done });
      return await done;
    } finally {
      this.#queued.delete(compactionId);
    }
  }

  /** Runs the compaction, and removes it from the queue even if it fails. */
  async #runInPlace(
    place: CompactionPlace,
    request: CompactionRequest,
    begun: Promise<void>,
    stop: AbortController,
  ): Promise<SessionCompaction> {
    const { store, agents, clock, events } = this.#parts;
    const { claim } = place;
    const { signal } = stop;
    const { sessionId } = claim;
    const end = (compacted: Compacted | undefined) => store.endCompaction(claim, { now: clock.now(), compacted });
    try {
      if (!place.isFirst) await orAborted(begun, signal);
      signal.throwIfAborted();
      const agent = agents.find(place.agent);
      if (!agent) throw new GatewayError("turn-failed", `The agent ${place.agent} was removed from the configuration.`);
      const { before, compact } = await planCompaction(store, agent.backend, place, request);
      signal.throwIfAborted();
      const began = clock.monotonic();
      const write = (work: Compact) => this.#write(agent, claim, request, stop, work);
      const compacted = compact && (await this.#limited(agent.name, signal, () => write(compact)));
      const ms = Math.round(clock.monotonic() - began);
      if (!(await end(compacted))) throw (await store.getSession(sessionId)) ? lostPlace() : sessionNotFound(sessionId);
      if (!compacted)
        return { sessionId, compacted: false, reason: reasonFor(before.messages, request), before, after: before };
      const { after } = compacted;
      const cause = request.payer === AUTOMATIC ? "size" : "asked";
      events.sessionCompacted({ sessionId, agent: agent.name, cause, before, after, ms });
      return { sessionId, compacted: true, before, after };
    } catch (error) {
      // If the store fails too, the place is freed when its lease ends.
      await end(undefined).catch((error: unknown) => events.storeFailed({ operation: "endCompaction", error }));
      throw error;
    }
  }

  /** Runs `work`, but at most `AT_ONCE` times concurrently for an agent. Further calls wait in order. */
  async #limited<T>(agent: string, signal: AbortSignal, work: () => Promise<T>): Promise<T> {
    const others = this.#writing.get(agent) ?? new Set();
    this.#writing.set(agent, others);
    while (others.size >= AT_ONCE) await orAborted(Promise.allSettled([Promise.race(others)]), signal);
    const mine: Promise<T> = work().finally(() => others.delete(mine));
    others.add(mine);
    return await mine;
  }

  /** Requests the summary from the backend, with the deadline of a turn. Counts the usage even if the backend fails. */
  async #write(
    agent: Agent,
    { turnId }: Claim,
    { payer }: CompactionRequest,
    stop: AbortController,
    compact: Compact,
  ): Promise<Compacted> {
    const { store, clock, events, countedModels } = this.#parts;
    const began = clock.monotonic();
    let usage = NO_USAGE;
    let model = countedModel(agent, undefined);
    const stopTimer = clock.after(agent.deadlineMs, () => {
      stop.abort(new GatewayError("turn-timeout", `The summary took longer than ${agent.deadlineMs} ms.`));
    });
    try {
      return await compact(stop.signal, (used, answered) => {
        usage = addUsage(usage, usageOf(used));
        model = modelNamed(answered ?? "") ?? model;
      });
    } catch (error) {
      if (stop.signal.aborted) throw stop.signal.reason;
      events.backendFailed({ turnId, agent: agent.name, error });
      const detail = error instanceof BackendError ? error.message : "The backend could not write the summary.";
      throw new GatewayError("turn-failed", detail, { cause: error });
    } finally {
      stopTimer();
      const latencyMs = clock.monotonic() - began;
      events.attemptUsed({ agent: agent.name, model: labelOfModel(agent, model), usage });
      const counted = countedModels(agent, model);
      const used = { now: clock.now(), agent: agent.name, ...payer, model: counted, usage, latencyMs };
      // Not awaited, so that the session's next turn does not wait for it.
      store.countUsage(used).catch((error: unknown) => events.storeFailed({ operation: "countUsage", error }));
    }
  }

  /** The number of tokens above which a session of this agent is compacted automatically. It depends on the context of the agent's model. 0 means never. */
  #dueAt(name: string): number {
    const { settings, agents } = this.#parts;
    const most = settings().compactAt;
    const agent = most === 0 ? undefined : agents.find(name);
    const fits = agent?.backend.contextTokens?.(agent.model);
    return fits === undefined ? most : Math.min(most, Math.floor(fits * CONTEXT_SHARE));
  }

  /** Compacts a session without a request of a caller. Reports a failure, and returns true if messages were replaced. */
  async #runAutomatically(sessionId: string, keepTokens?: number): Promise<boolean> {
    const { store, events } = this.#parts;
    try {
      return (await this.#run(sessionId, { keep: KEEP, keepTokens, payer: AUTOMATIC })).compacted;
    } catch (error) {
      const agent = (await store.getSession(sessionId).catch(() => undefined))?.agent;
      if (agent !== undefined && !this.#isStopped) events.compactionFailed({ sessionId, agent, error });
      return false;
    }
  }

  /** Compacts a session that is too long. If it is still too long afterwards, the next attempt waits until it has grown by `GROWTH`. */
  async #shorten({ sessionId, agent, contextBytes }: SessionRef): Promise<void> {
    const due = this.#dueAt(agent);
    await this.#runAutomatically(sessionId, Math.floor(due / 2));
    const left = await this.#parts.store.getSession(sessionId).then(
      (session) => session?.contextBytes ?? 0,
      () => contextBytes,
    );
    if (left * GROWTH > due * BYTES_PER_TOKEN) this.#pausedUntil.set(sessionId, left * GROWTH);
    else this.#pausedUntil.delete(sessionId);
  }
}

/** Reads the session and plans its compaction. `compact` writes the summary; it is undefined if there is nothing to compact. */
async function planCompaction(
  store: Store,
  backend: Backend,
  { claim: { sessionId }, seq }: CompactionPlace,
  request: CompactionRequest,
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
  request: CompactionRequest,
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

function reasonFor(messages: number, { keep }: CompactionRequest): string {
  return messages === 0
    ? "It has no messages that are not compacted."
    : `It has ${messages} ${messages === 1 ? "message" : "messages"}, and the last ${keep} are kept. Send a smaller \`keep\`.`;
}

function shuttingDown(): GatewayError {
  return new GatewayError("shutting-down", undefined, { retryAfterMs: 1_000 });
}
function lostPlace(): GatewayError {
  return new GatewayError("turn-failed", "The compaction lost its place in the session's queue. Try again.");
}
