import type { CoreParts } from "#core/parts.ts";
import type { SessionCompaction } from "#generated/rpc-types.ts";
import { GatewayError } from "#kit/errors.ts";
import { newId } from "#kit/ids.ts";
import type { CompactionResult, CompactionTask, Entry, SessionRef, Surface } from "#store/store.ts";
import { sessionNotFound } from "./stored-sessions.ts";
import { isTurnEnd } from "./turn-entries.ts";

/** The number of messages that an automatic compaction keeps. */
const KEEP = 20;
/** The approximate number of bytes per token. Whether a session is due is estimated from its bytes; its tokens are counted only then. */
const BYTES_PER_TOKEN = 4;
/** The share of a model's context that is reserved for the conversation. The rest is for instructions, tools and the reply. */
const CONTEXT_SHARE = 0.8;
/** After a compaction that did not free enough, the session must grow by this factor before the next one. */
const GROWTH = 1.25;
/** The interval at which a compaction is polled, because a notification of its end may be lost. */
const POLL_MS = 10_000;
/** The wait for the notification of a compaction that has ended. */
const LATE_MS = 1_000;
const PAGE = 200;

/** A compaction that this gateway requested. */
type Asked = { sessionId: string; turnId: string; settle: (result: CompactionResult | GatewayError) => void };

/** The surface and the caller to which the usage is charged. */
type Payer = { surface: Surface; caller: string };
/** The payer of an automatic compaction. */
export const AUTOMATIC: Payer = { surface: "heartbeat", caller: "compaction" };

/** Requests compactions of sessions. A compaction is a turn in its session's queue, which any gateway may run. */
export class Compactions {
  readonly #parts: CoreParts;
  readonly #asked = new Map<string, Asked>();
  /** The sizes in bytes that sessions must exceed before their next automatic compaction. Infinity while one is running. */
  readonly #pausedUntil = new Map<string, number>();
  #isStopped = false;

  constructor(parts: CoreParts) {
    this.#parts = parts;
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
      for (const one of this.#asked.values()) if (one.sessionId === sessionId) one.settle(sessionNotFound(sessionId));
    },
    compacted: (turnId: string, result: CompactionResult): void => this.#asked.get(turnId)?.settle(result),
  };

  /**
   * Waits for the turns in the session's queue, then replaces all messages except the last `keep` with a summary. Resolves when the summary is
   * stored. If it fails, the session is unchanged.
   */
  compact({ sessionId, keep }: { sessionId: string; keep: number }, caller: string): Promise<SessionCompaction> {
    return this.#run(sessionId, { kind: "compact", keep, keepTokens: undefined }, { surface: "rpc", caller });
  }

  /**
   * Compacts a full session if automatic compaction is on. Returns true if messages were replaced, and undefined if there was no place for
   * a compaction: another gateway may have requested one.
   */
  async makeRoom(sessionId: string): Promise<boolean | undefined> {
    return this.#parts.settings().compactAt > 0 && (await this.#runAutomatically(sessionId, { isOnly: true }));
  }

  /** Cancels the compactions that this gateway requested, and requests no more. The turns behind them in the queue can then run. */
  [Symbol.dispose](): void {
    this.#isStopped = true;
    for (const { turnId, settle } of this.#asked.values()) {
      settle(shuttingDown());
      this.#cancel(turnId);
    }
  }

  #cancel(turnId: string): void {
    const { store, clock, events } = this.#parts;
    store.cancelTurn(turnId, clock.now()).catch((error: unknown) => {
      if (GatewayError.from(error).name !== "turn-not-found") events.storeFailed({ operation: "cancelTurn", error });
    });
  }

  /** Queues a compaction, and waits for its result. */
  async #run(sessionId: string, task: CompactionTask, payer: Payer, isOnly = false): Promise<SessionCompaction> {
    if (this.#isStopped) throw shuttingDown();
    const { store, clock, settings, agents } = this.#parts;
    const now = clock.now();
    const turnId = newId("cmp", now);
    let settle: Asked["settle"] = () => {};
    const settled = new Promise<CompactionResult | GatewayError>((resolve) => {
      settle = resolve;
    });
    this.#asked.set(turnId, { sessionId, turnId, settle });
    let stopPolling = () => {};
    try {
      const limits = settings().limits.store;
      const order = { now, turnId, sessionId, ...payer, task, isOnly, limits };
      const started = Promise.all([store.getSession(sessionId), store.startCompaction(order)]);
      const [session] = await started.catch((error: unknown) => {
        this.#cancel(turnId);
        throw error;
      });
      if (session && !agents.find(session.agent)) {
        this.#cancel(turnId);
        throw new GatewayError("turn-failed", `The agent ${session.agent} was removed from the configuration.`);
      }
      stopPolling = this.#poll({ sessionId, turnId, settle }, session?.lastSeq ?? 0);
      return answerOf(sessionId, await settled);
    } finally {
      stopPolling();
      this.#asked.delete(turnId);
    }
  }

  /** Settles a compaction that has ended while its notification was lost. `after`: an entry before the end of the compaction. */
  #poll({ sessionId, turnId, settle }: Asked, after: number): () => void {
    const { store, clock } = this.#parts;
    let stop = () => {};
    let hasEnded = false;
    const poll = async () => {
      try {
        const turn = await store.getTurn(turnId);
        if (turn === undefined && hasEnded) settle(await this.#resultOf(sessionId, turnId, after));
        hasEnded = turn === undefined;
      } catch {
        // The store is polled again.
      }
      if (this.#asked.has(turnId)) stop = clock.after(hasEnded ? LATE_MS : POLL_MS, poll);
    };
    stop = clock.after(POLL_MS, poll);
    return () => stop();
  }

  /** The stored result of a compaction: its entry in the journal. A failed one has no entry. */
  async #resultOf(sessionId: string, turnId: string, from: number): Promise<CompactionResult | GatewayError> {
    for (let after = from; ; ) {
      const page = await this.#parts.store.readEntries(sessionId, { after, limit: PAGE });
      for (const entry of page) {
        if (entry.name !== "session.compacted" || entry.turnId !== turnId) continue;
        return { before: entry.before, after: entry.after, reason: undefined, isCompacted: true, error: undefined };
      }
      if (page.length < PAGE) return new GatewayError("turn-failed", "The result of the compaction was lost.");
      after = page.at(-1)?.seq ?? after;
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

  /** Compacts a session without a request of a caller. Reports a failure. Returns the same as `makeRoom`. */
  async #runAutomatically(
    sessionId: string,
    { keepTokens, isOnly = false }: { keepTokens?: number; isOnly?: boolean },
  ): Promise<boolean | undefined> {
    const { store, events } = this.#parts;
    try {
      return (await this.#run(sessionId, { kind: "compact", keep: KEEP, keepTokens }, AUTOMATIC, isOnly)).compacted;
    } catch (error) {
      if (isOnly && GatewayError.from(error).name === "session-busy") return undefined;
      const agent = (await store.getSession(sessionId).catch(() => undefined))?.agent;
      if (agent !== undefined && !this.#isStopped) events.compactionFailed({ sessionId, agent, error });
      return false;
    }
  }

  /** Compacts a session that is too long. If it is still too long afterwards, the next attempt waits until it has grown by `GROWTH`. */
  async #shorten({ sessionId, agent, contextBytes }: SessionRef): Promise<void> {
    const due = this.#dueAt(agent);
    await this.#runAutomatically(sessionId, { keepTokens: Math.floor(due / 2) });
    const left = await this.#parts.store.getSession(sessionId).then(
      (session) => session?.contextBytes ?? 0,
      () => contextBytes,
    );
    if (left * GROWTH > due * BYTES_PER_TOKEN) this.#pausedUntil.set(sessionId, left * GROWTH);
    else this.#pausedUntil.delete(sessionId);
  }
}

function answerOf(sessionId: string, result: CompactionResult | GatewayError): SessionCompaction {
  if (result instanceof GatewayError) throw result;
  if (result.error !== undefined) {
    const { name, detail, budget } = result.error;
    throw new GatewayError(name, detail, budget && { budget });
  }
  const { before, after, isCompacted, reason = "" } = result;
  return isCompacted
    ? { sessionId, compacted: true, before, after }
    : { sessionId, compacted: false, reason, before, after };
}

function shuttingDown(): GatewayError {
  return new GatewayError("shutting-down", undefined, { retryAfterMs: 1_000 });
}
