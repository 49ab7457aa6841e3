import type { TellUsed } from "#backends/backend.ts";
import { type Agent, type Agents, countedModel, labelOfModel } from "#core/agents/agents.ts";
import { leaseMsOf } from "#core/leases.ts";
import type { SessionCompaction } from "#generated/rpc-types.ts";
import type { Clock } from "#kit/clock.ts";
import { BackendError, GatewayError } from "#kit/errors.ts";
import { createGates } from "#kit/gates.ts";
import { newId } from "#kit/ids.ts";
import type { InSlice } from "#kit/slices.ts";
import { addUsage, modelNamed, NO_USAGE, usageOf } from "#kit/usages.ts";
import type { Events } from "#observe/events.ts";
import type { Claim, CompactionPlace, Entry, SessionRef, Store, StoreLimits, Surface } from "#store/store.ts";
import { type CompactionWish, planCompaction } from "./compaction.ts";
import { isTurnEnd } from "./journal.ts";

/** Summaries that one agent writes at once: they are no turns, and no agent's concurrency bounds them. */
const AT_ONCE = 8;
/** How many messages a compaction keeps that nobody asked for. */
const KEEP = 20;
/** Messages are counted in bytes until a session is due: about as many make a token. */
const BYTES_PER_TOKEN = 4;
/** Of what a model can be told at once so much is for the conversation; the rest is for instructions, tools and the reply. */
const CONTEXT_SHARE = 0.8;
/** A session that was compacted in vain has to grow by so much before that is tried again. */
const GROWTH = 1.25;

type CompactionParts = {
  store: Store;
  agents: Agents;
  clock: Clock;
  events: Events;
  node: string;
  limits: () => StoreLimits;
  /** Tokens past which a session is compacted by itself; 0 is never. */
  compactAt: () => number;
  inSlice: InSlice;
};

type Waiting = { sessionId: string; claim: Claim | undefined; controller: AbortController; begin: () => void };
/** Under whose name what a summary took is counted. */
type Payer = { surface: Surface; caller: string };
const ITSELF: Payer = { surface: "heartbeat", caller: "compaction" };

/** Compactions: each takes its place in its session's queue, and runs when what was before it has ended. */
export const createCompactions = (parts: CompactionParts) => {
  const { store, agents, clock, events, node, limits, compactAt, inSlice } = parts;
  const leaseMs = leaseMsOf(store);
  const waiting = new Map<string, Waiting>();
  const gates = createGates(AT_ONCE);
  /** Sessions that are compacted by themselves now, or that wait until they have so many bytes. */
  const pausedUntil = new Map<string, number>();
  let isStopped = false;
  let stopTick: (() => void) | undefined;

  const abort = (of: (one: Waiting) => boolean, error: GatewayError) => {
    for (const one of waiting.values()) if (of(one)) one.controller.abort(error);
  };

  const tick = () => {
    stopTick = waiting.size > 0 ? clock.after(leaseMs / 3, tick) : undefined;
    const held = [...waiting.values()].flatMap(({ claim }) => claim ?? []);
    if (held.length === 0) return;
    store.extendClaims(held, leaseMs).then(
      (lost) => {
        for (const { turnId } of lost) waiting.get(turnId)?.controller.abort(lostPlace());
      },
      (error: unknown) => events.storeFailed({ operation: "extendClaims", error }),
    );
  };

  /** Takes a place in the queue, and gives it up again whatever `run` does. `run` begins when the place is the first. */
  const inQueue = async <T>(
    sessionId: string,
    run: (place: CompactionPlace, signal: AbortSignal, leaveWith: LeaveWith) => Promise<T>,
  ): Promise<T> => {
    if (isStopped) throw shuttingDown();
    const now = clock.now();
    const compactionId = newId("cmp", now);
    const controller = new AbortController();
    const { signal } = controller;
    let begin = () => {};
    const begun = new Promise<void>((resolve) => (begin = resolve));
    const one: Waiting = { sessionId, claim: undefined, controller, begin };
    waiting.set(compactionId, one);
    stopTick ??= clock.after(leaseMs / 3, tick);
    let hasLeft = true;
    try {
      const order = { now, compactionId, sessionId, node, leaseMs, limits: limits() };
      const place = await store.queueCompaction(order);
      one.claim = place.claim;
      hasLeft = false;
      if (!place.isFirst) await orAborted(begun, signal);
      signal.throwIfAborted();
      return await run(place, signal, async (compacted) => {
        const isKept = await store.endCompaction(place.claim, { now: clock.now(), compacted });
        hasLeft = true;
        if (isKept) return;
        throw (await store.getSession(sessionId)) ? lostPlace() : notFound(sessionId);
      });
    } finally {
      waiting.delete(compactionId);
      if (one.claim && !hasLeft) await giveUp(one.claim);
    }
  };

  const giveUp = async (claim: Claim): Promise<void> => {
    try {
      await store.endCompaction(claim, { now: clock.now(), compacted: undefined });
    } catch (error) {
      // Its lease ends by itself.
      events.storeFailed({ operation: "endCompaction", error });
    }
  };

  const run = (sessionId: string, wish: CompactionWish, payer: Payer): Promise<SessionCompaction> =>
    inQueue(sessionId, async (place, signal, leaveWith) => {
      const agent = agents.find(place.agent);
      if (!agent) throw new GatewayError("turn-failed", `The agent ${place.agent} left the configuration.`);
      const { before, compact } = await planCompaction(store, agent.backend, place, wish);
      signal.throwIfAborted();
      if (!compact) {
        await leaveWith(undefined);
        return { sessionId, compacted: false, reason: shortWords(before.messages, wish), before, after: before };
      }
      const began = clock.monotonic();
      const compacted = await gates.pass(agent.name, signal, () =>
        counted(agent, payer, (used) => inTime(agent, place.claim, signal, (inner) => compact(inner, used))),
      );
      await leaveWith(compacted);
      const { after } = compacted;
      const ms = Math.round(clock.monotonic() - began);
      const cause = payer === ITSELF ? "size" : "asked";
      events.sessionCompacted({ sessionId, agent: agent.name, cause, before, after, ms });
      return { sessionId, compacted: true, before, after };
    });

  /** Counts what a summary took, also of one that failed, as an attempt that was no turn's. */
  const counted = async <T>(agent: Agent, payer: Payer, work: (used: TellUsed) => Promise<T>) => {
    const began = clock.monotonic();
    let usage = NO_USAGE;
    let model = countedModel(agent, undefined);
    try {
      return await work((used, answered) => {
        usage = addUsage(usage, usageOf(used));
        model = modelNamed(answered ?? "") ?? model;
      });
    } finally {
      const latencyMs = clock.monotonic() - began;
      const of = { now: clock.now(), agent: agent.name, ...payer, model };
      events.attemptUsed({ agent: agent.name, model: labelOfModel(agent, model), usage });
      // Not waited for: the session's next turn would have to, too.
      store.countUsage({ ...of, usage, latencyMs }).catch((error: unknown) => {
        events.storeFailed({ operation: "countUsage", error });
      });
    }
  };

  /** Gives the backend as long as it has for a turn. */
  const inTime = async <T>(
    agent: Agent,
    claim: Claim,
    outer: AbortSignal,
    work: (signal: AbortSignal) => Promise<T>,
  ) => {
    const late = new AbortController();
    const signal = AbortSignal.any([outer, late.signal]);
    const stop = clock.after(agent.deadlineMs, () => {
      late.abort(new GatewayError("turn-timeout", `The summary took longer than ${agent.deadlineMs} ms.`));
    });
    try {
      return await work(signal);
    } catch (error) {
      if (signal.aborted) throw signal.reason;
      events.backendFailed({ turnId: claim.turnId, agent: agent.name, error });
      const detail = error instanceof BackendError ? error.message : "The backend could not write the summary.";
      throw new GatewayError("turn-failed", detail, { cause: error });
    } finally {
      stop();
    }
  };

  /** Tokens past which a session of this agent is compacted by itself: it has to fit into what its model can be told at once. */
  const dueAt = (name: string): number => {
    const most = compactAt();
    const agent = most === 0 ? undefined : agents.find(name);
    const fits = agent?.backend.contextTokens?.(agent.model);
    return fits === undefined ? most : Math.min(most, Math.floor(fits * CONTEXT_SHARE));
  };

  const runByItself = async (sessionId: string, agent: string, contextBytes: number): Promise<void> => {
    const due = dueAt(agent);
    const keepTokens = Math.floor(due / 2);
    try {
      await run(sessionId, { keep: KEEP, keepTokens }, ITSELF);
      const left = (await store.getSession(sessionId))?.contextBytes ?? 0;
      if (left * GROWTH > due * BYTES_PER_TOKEN) pausedUntil.set(sessionId, left * GROWTH);
      else pausedUntil.delete(sessionId);
    } catch (error) {
      pausedUntil.set(sessionId, contextBytes * GROWTH);
      if (isNotFound(error)) pausedUntil.delete(sessionId);
      else if (!isStopped) events.compactionFailed({ sessionId, agent, error });
    }
  };

  return {
    /**
     * Puts a summary in the place of all but the last `keep` messages, when what waits in the session has run; answers when it is done.
     * What fails changes nothing.
     */
    compact: ({ sessionId, keep }: { sessionId: string; keep: number }, caller: string): Promise<SessionCompaction> =>
      run(sessionId, { keep }, { surface: "rpc", caller }),

    /** Compacts a session that is full, where sessions are compacted by themselves; whether that went well. */
    async makeRoom(sessionId: string): Promise<boolean> {
      if (compactAt() === 0) return false;
      try {
        return (await run(sessionId, { keep: KEEP }, ITSELF)).compacted;
      } catch (error) {
        const agent = (await store.getSession(sessionId))?.agent;
        if (agent !== undefined && !isStopped) events.compactionFailed({ sessionId, agent, error });
        return false;
      }
    },

    /** What the store's watcher is told. */
    watcher: {
      entries(session: SessionRef, entries: readonly Entry[]): void {
        const limit = dueAt(session.agent) * BYTES_PER_TOKEN;
        if (limit === 0 || session.contextBytes <= limit || isStopped || !entries.some(isTurnEnd)) return;
        if (session.contextBytes <= (pausedUntil.get(session.sessionId) ?? 0)) return;
        pausedUntil.set(session.sessionId, Infinity);
        const { sessionId, agent, contextBytes } = session;
        // The store is in the middle of telling.
        void inSlice(() => runByItself(sessionId, agent, contextBytes));
      },
      sessionDeleted({ sessionId }: SessionRef): void {
        pausedUntil.delete(sessionId);
        if (waiting.size > 0) abort((one) => one.sessionId === sessionId, notFound(sessionId));
      },
      compaction: (compactionId: string): void => waiting.get(compactionId)?.begin(),
    },

    /** Takes no more, and ends what waits and what runs: the turns behind them may still go on. */
    stop(): void {
      isStopped = true;
      abort(() => true, shuttingDown());
      stopTick?.();
    },
  };
};

type LeaveWith = (compacted: Parameters<Store["endCompaction"]>[1]["compacted"]) => Promise<void>;

const orAborted = (promise: Promise<void>, signal: AbortSignal): Promise<void> =>
  new Promise((resolve, reject) => {
    const leave = () => reject(signal.reason);
    if (signal.aborted) return leave();
    signal.addEventListener("abort", leave, { once: true });
    promise.then(resolve, reject);
  });

const shortWords = (messages: number, { keep }: CompactionWish): string =>
  messages === 0
    ? "It has no messages that are not compacted."
    : `It has ${messages} ${messages === 1 ? "message" : "messages"}, and the last ${keep} are kept: say a smaller \`keep\`.`;

const shuttingDown = (): GatewayError => new GatewayError("shutting-down", undefined, { retryAfterMs: 1_000 });
const notFound = (sessionId: string): GatewayError =>
  new GatewayError("session-not-found", `No session has the id ${sessionId}.`);
const isNotFound = (error: unknown): boolean => error instanceof GatewayError && error.name === "session-not-found";
const lostPlace = (): GatewayError =>
  new GatewayError("turn-failed", "The compaction lost its place in the session's queue: try again.");
