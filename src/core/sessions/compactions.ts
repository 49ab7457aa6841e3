import type { Backend, BackendMessage, TellUsed } from "#backends/backend.ts";
import { type Agent, countedModel, labelOfModel } from "#core/agents/agents.ts";
import type { CoreParts } from "#core/parts.ts";
import { type Lease, leaseOfClaims, Worker } from "#core/worker.ts";
import type { SessionCompaction } from "#generated/rpc-types.ts";
import { orAborted } from "#kit/abort.ts";
import { BackendError, GatewayError } from "#kit/errors.ts";
import { newId } from "#kit/ids.ts";
import { addUsage, modelNamed, NO_USAGE, usageOf } from "#kit/usages.ts";
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

/** The most summaries that an agent writes at once. They are not turns, so the agent's concurrency does not limit them. */
const AT_ONCE = 8;
/** The number of messages that an automatic compaction keeps. */
const KEEP = 20;
/** About this number of bytes is a token. A session is measured in bytes until it is due. */
const BYTES_PER_TOKEN = 4;
/** The share of a model's context that is for the conversation; the rest is for instructions, tools and the reply. */
const CONTEXT_SHARE = 0.8;
/** After a compaction that did not free enough, the session must grow by this factor before the next one. */
const GROWTH = 1.25;

/** The most text of one call to a backend. A longer conversation is summarised in parts, each with the summary of the parts before. */
const PART_CHARACTERS = 16 * 1024 * 1024;
/** A longer summary is an error of the backend. */
const SUMMARY_LIMIT = 4 * 1024 * 1024;

/** A compaction in a session's queue, or on its way there. `begin` is called when it is the first in the queue. */
type Queued = { sessionId: string; stop: AbortController; begin: () => void };
/** A compaction that has a place in the queue, until `done` is settled. */
type Placed = { claim: Claim; stop: AbortController; done: Promise<unknown> };

type CompactionRequest = {
  keep: number;
  /** Keeps fewer messages if the last ones have more tokens. */
  keepTokens?: number | undefined;
  /** The surface and the caller for which the usage is counted. */
  payer: { surface: Surface; caller: string };
};
const AUTOMATIC: CompactionRequest["payer"] = { surface: "heartbeat", caller: "compaction" };

/** Lets the backend write the summary. */
type Compact = (signal: AbortSignal, used: TellUsed) => Promise<Compacted>;

/** Compactions: each takes its place in its session's queue, and runs when the turns before it have ended. */
export class Compactions {
  readonly #parts: CoreParts;
  readonly #lease: Lease<Placed>;
  readonly #worker: Worker<Placed>;
  readonly #queued = new Map<string, Queued>();
  /** Summaries that are being written, by agent. */
  readonly #writing = new Map<string, Set<Promise<unknown>>>();
  /** Sessions that are being compacted automatically, and those that wait until they have this many bytes. */
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
      // The store is still notifying its watchers.
      void this.#parts.inBackground(() => this.#shorten({ sessionId, agent, ordinal, contextBytes }));
    },
    sessionDeleted: ({ sessionId }: SessionRef): void => {
      this.#pausedUntil.delete(sessionId);
      this.#abort((one) => one.sessionId === sessionId, sessionNotFound(sessionId));
    },
    compaction: (compactionId: string): void => this.#queued.get(compactionId)?.begin(),
  };

  /**
   * Replaces all but the last `keep` messages with a summary after the turns that wait in the session have run. Resolves when it is done.
   * A failure changes nothing.
   */
  compact({ sessionId, keep }: { sessionId: string; keep: number }, caller: string): Promise<SessionCompaction> {
    return this.#run(sessionId, { keep, payer: { surface: "rpc", caller } });
  }

  /** Compacts a full session if automatic compaction is on. Returns true if that succeeded. */
  async makeRoom(sessionId: string): Promise<boolean> {
    return this.#parts.settings().compactAt > 0 && (await this.#runAutomatically(sessionId));
  }

  /** Starts no more compactions, and ends the waiting and running ones. The turns behind them may continue. */
  [Symbol.dispose](): void {
    this.#isStopped = true;
    this.#abort(() => true, shuttingDown());
    void this.#worker.drain({ ms: 0 });
  }

  #abort(isMeant: (one: Queued) => boolean, error: GatewayError): void {
    for (const one of this.#queued.values()) if (isMeant(one)) one.stop.abort(error);
  }

  /** Takes a place in the session's queue, and runs the compaction when the place is the first. */
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

  /** Runs the compaction, and gives its place back even if it fails. */
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
      const compacted = compact && (await this.#inTurn(agent.name, signal, () => write(compact)));
      const ms = Math.round(clock.monotonic() - began);
      if (!(await end(compacted))) throw (await store.getSession(sessionId)) ? lostPlace() : sessionNotFound(sessionId);
      if (!compacted)
        return { sessionId, compacted: false, reason: reasonFor(before.messages, request), before, after: before };
      const { after } = compacted;
      const cause = request.payer === AUTOMATIC ? "size" : "asked";
      events.sessionCompacted({ sessionId, agent: agent.name, cause, before, after, ms });
      return { sessionId, compacted: true, before, after };
    } catch (error) {
      // If the store fails too, the lease ends.
      await end(undefined).catch((error: unknown) => events.storeFailed({ operation: "endCompaction", error }));
      throw error;
    }
  }

  /** Does the work when fewer than `AT_ONCE` summaries of the agent are being written, in the order of the calls. */
  async #inTurn<T>(agent: string, signal: AbortSignal, work: () => Promise<T>): Promise<T> {
    const others = this.#writing.get(agent) ?? new Set();
    this.#writing.set(agent, others);
    while (others.size >= AT_ONCE) await orAborted(Promise.allSettled([Promise.race(others)]), signal);
    const mine: Promise<T> = work().finally(() => others.delete(mine));
    others.add(mine);
    return await mine;
  }

  /** Lets the backend write the summary within the deadline of a turn. Counts its usage, even if it fails. */
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
      // Not awaited: the next turn of the session would have to wait as well.
      store.countUsage(used).catch((error: unknown) => events.storeFailed({ operation: "countUsage", error }));
    }
  }

  /** The number of tokens past which a session of this agent is compacted automatically: it must fit into its model's context. */
  #dueAt(name: string): number {
    const { settings, agents } = this.#parts;
    const most = settings().compactAt;
    const agent = most === 0 ? undefined : agents.find(name);
    const fits = agent?.backend.contextTokens?.(agent.model);
    return fits === undefined ? most : Math.min(most, Math.floor(fits * CONTEXT_SHARE));
  }

  /** Compacts a session that no caller asked to compact. Returns true if that succeeded. */
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

  /** Compacts a session that is past its size. If that is not enough, the next attempt waits until the session has grown. */
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

/** Reads the session of a compaction that is the first in its queue. `compact` is undefined if there is nothing to compact. */
async function planCompaction(
  store: Store,
  backend: Backend,
  { claim: { sessionId }, seq }: CompactionPlace,
  request: CompactionRequest,
): Promise<{ before: SessionSize; compact: Compact | undefined }> {
  const count = (text: string) => backend.countTokens?.(text) ?? Math.ceil(text.length / 4);
  const countMessage = (message: Message) => toBackend(message).reduce((sum, { text }) => sum + count(text), 0);
  const [earlier, all] = await Promise.all([store.readSummary(sessionId), readContext(store, sessionId)]);
  // Turns behind this place have not run: all their messages are newer than it.
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
      // The engines count in this way: without the messages from before the session.
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
    // A backend that obeys the signal reports its usage first.
    if (signal.aborted) await new Promise((resolve) => setImmediate(resolve));
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
