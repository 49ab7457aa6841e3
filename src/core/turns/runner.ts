import type { Agent } from "#core/agents/agents.ts";
import { leaseMsOf } from "#core/leases.ts";
import { GatewayError } from "#kit/errors.ts";
import { newId } from "#kit/ids.ts";
import { IdTable } from "#kit/tables.ts";
import { IN_STRETCHES_FROM } from "#kit/utf8.ts";
import type { Claim, ClaimedTurn, Store } from "#store/store.ts";
import { type AttemptParts, endRemoved, Run, runAndEnd } from "./attempt.ts";
import type { StopReason } from "./run-turn.ts";
import { createWatches } from "./turn-watch.ts";

const TICK_MS = 250;
/** Turns that are claimed in one go, and how long they are begun before others are heard: an echo's turn is over as soon as it has begun. */
const CLAIMED_AT_ONCE = 64;
const SLICE_MS = 3;
/** The log's `store.failed` has what comes of these. */
const STORE_TROUBLE: ReadonlySet<string> = new Set(["store-unavailable", "store-full"]);
/** How long a stop waits for a run that is about to begin; it may be meant for another node. */
const EARLY_STOP_MS = 5_000;

export type RunnerParts = AttemptParts & { concurrency: () => number };

/**
 * Claims turns and runs them: one at a time in a session (the store sees to that), at most `concurrency` in all and as many of an
 * agent as the agent says. A full agent makes only its own turns wait.
 */
export const createRunner = (parts: RunnerParts) => {
  const { store, agents, journal, clock, events, concurrency } = parts;
  const node = newId("node", clock.now());
  const leaseMs = leaseMsOf(store);
  const runs = new IdTable<Run>();
  const runningOf = new Map<string, number>();
  /** Stops that came between a turn's claim and its run. */
  const early = new Map<string, StopReason>();
  /** Agents that had no place when turns were claimed: some of theirs may be ready, and nobody will tell of them again. */
  const full = new Set<string>();
  let state: "running" | "draining" | "stopped" = "running";
  let taken = 0;
  let wanted = false;
  let pumping = false;
  /** Places are promised to a claim that is under way: only others can be reserved. */
  let claiming = false;
  let stopTick: (() => void) | undefined;
  let stopDue: (() => void) | undefined;
  let whenIdle: (() => void) | undefined;
  let lastExtended = clock.monotonic();

  const freeOf = (name: string): number => {
    const agent = agents.find(name);
    return agent ? agent.concurrency - (runningOf.get(name) ?? 0) : 0;
  };
  const askFree = (name: string): number => {
    const free = freeOf(name);
    if (free < 1) full.add(name);
    return free;
  };
  /** There is a place whatever a claim that is under way takes. */
  const hasSpare = (name: string) => concurrency() - taken > CLAIMED_AT_ONCE && freeOf(name) > CLAIMED_AT_ONCE;
  const hasClaimable = ({ name }: Agent): boolean => {
    const { queued, pausedAt } = store.agentCounts(name);
    return queued > 0 && pausedAt === undefined;
  };
  const mayClaim = () => state === "running" || (state === "draining" && !store.durable);
  const hold = (name: string, by: 1 | -1) => {
    taken += by;
    runningOf.set(name, (runningOf.get(name) ?? 0) + by);
  };
  const letGo = (name: string) => {
    hold(name, -1);
    if (full.delete(name) || wanted) wake();
    if (taken === 0) whenIdle?.();
  };

  const wake = () => {
    wanted = true;
    if (pumping) return;
    pumping = true;
    queueMicrotask(pump);
  };

  const pump = async (): Promise<void> => {
    try {
      let began = clock.monotonic();
      while (wanted && mayClaim() && taken < concurrency()) {
        if (clock.monotonic() - began >= SLICE_MS) {
          await new Promise((resolve) => setImmediate(resolve));
          began = clock.monotonic();
          continue;
        }
        wanted = false;
        claiming = true;
        const free = Math.min(concurrency() - taken, CLAIMED_AT_ONCE);
        const request = { now: clock.now(), node, leaseMs, free, freeOf: askFree };
        const { turns, nextDueInMs } = await store.claimTurns({
          ...request,
          newMessageId: () => newId("msg", clock.now()),
        });
        claiming = false;
        for (const claimed of turns) begin(claimed, false);
        if (turns.length > 0) wanted = true;
        stopDue?.();
        stopDue = nextDueInMs === undefined ? undefined : clock.after(nextDueInMs, wake);
      }
    } catch (error) {
      events.storeFailed({ operation: "claimTurns", error });
      clock.after(1_000, wake);
    } finally {
      claiming = false;
      pumping = false;
      if (taken === 0) whenIdle?.();
    }
  };

  /** Runs a claimed turn. `held`: its place was taken before the claim. Answers whether its end is on the way to the store already. */
  const begin = (claimed: ClaimedTurn, held: boolean): boolean => {
    const { turn } = claimed;
    if (!held) hold(turn.agent, 1);
    const agent = agents.find(turn.agent);
    const run = new Run(claimed, agent as Agent, clock.monotonic());
    // Its lease ended while it ran here: that attempt has lost its turn.
    runs.get(turn.turnId)?.stop("handed-back");
    runs.set(turn.turnId, run);
    const reason = early.size > 0 ? early.get(turn.turnId) : undefined;
    if (reason) run.stop(reason);
    stopTick ??= clock.after(TICK_MS, tick);
    // To keep a large message took a while, and so will its reply.
    if (agent && claimed.message.text.length > IN_STRETCHES_FROM) setImmediate(runAndEnd, runParts, run);
    else if (agent) runAndEnd(runParts, run);
    else
      endRemoved(parts, claimed).then(
        () => forget(run, undefined),
        (error: unknown) => forget(run, { error }),
      );
    return run.isEnding;
  };

  const forget = (run: Run, failed: { error: unknown } | undefined): void => {
    const { turnId, agent } = run.claimed.turn;
    if (failed) tellFailed(turnId, failed.error);
    if (runs.get(turnId) === run) runs.delete(turnId);
    letGo(agent);
  };

  const tellFailed = (turnId: string, error: unknown): void => {
    const { name } = GatewayError.from(error);
    // Past its lease it runs again, wherever the store is by then.
    if (STORE_TROUBLE.has(name)) events.storeFailed({ operation: "runTurn", error });
    else events.unexpectedError({ error, where: "runner" });
    // A store that is away comes back, but room has to be made by somebody.
    if (name === "store-full") journal.turnUnkept(turnId);
  };
  const runParts = { ...parts, watches: createWatches(clock), over: forget };

  /** Turns whose lease ended are another's, or nobody's: what they write here would be thrown away. */
  const stopLost = (lost: readonly Claim[]): void => {
    for (const { turnId, fence } of lost) {
      const run = runs.get(turnId);
      if (run?.claimed.claim.fence === fence) run.stop("handed-back");
    }
  };

  const tick = (): void => {
    stopTick = runs.size > 0 ? clock.after(TICK_MS, tick) : undefined;
    const time = clock.monotonic();
    const held: Claim[] = [];
    for (const run of runs.values()) {
      const { claimed, agent, since } = run;
      held.push(claimed.claim);
      if (agent && claimed.spentMs + time - since >= agent.deadlineMs) run.stop("timeout");
    }
    if (held.length === 0 || time - lastExtended < leaseMs / 3) return;
    lastExtended = time;
    store.extendClaims(held, leaseMs).then(stopLost, (error: unknown) => {
      lastExtended -= leaseMs / 4;
      events.storeFailed({ operation: "extendClaims", error });
    });
  };

  return {
    node,
    /** A place for a turn of this agent, when there is one: give it to `startTurn`, then to `begin` or back. */
    reserve(
      agent: string,
    ): { request: NonNullable<Parameters<Store["startTurn"]>[0]["claim"]>; free: () => void } | undefined {
      if (state !== "running" || taken >= concurrency() || freeOf(agent) < 1) return undefined;
      if (claiming ? !hasSpare(agent) : wanted) return undefined;
      hold(agent, 1);
      const now = clock.now();
      return {
        request: { now, node, leaseMs, replyMessageId: newId("msg", now) },
        free: () => letGo(agent),
      };
    },
    begin: (claimed: ClaimedTurn) => begin(claimed, true),
    wake,
    stop(turnId: string, reason: StopReason): void {
      const run = runs.get(turnId);
      run?.stop(reason);
      if (run) return;
      early.set(turnId, reason);
      clock.after(EARLY_STOP_MS, () => early.delete(turnId));
    },
    running: () => taken,
    runningOf: (agent: string) => runningOf.get(agent) ?? 0,
    /**
     * Takes no new turns of a durable store (those of one that forgets are run as long as there is time), lets what runs go on for
     * `ms`, then gives the rest back. Answers how many were given back.
     */
    async drain(ms: number): Promise<number> {
      state = "draining";
      // What is being claimed is queued no more, and does not run yet.
      const isIdle = () => taken === 0 && !claiming && (store.durable || !agents.list().some(hasClaimable));
      if (!isIdle()) {
        await new Promise<void>((resolve) => {
          clock.after(ms, resolve);
          whenIdle = () => queueMicrotask(() => isIdle() && resolve());
        });
      }
      state = "stopped";
      const left = runs.size;
      if (left > 0) {
        const idle = new Promise<void>((resolve) => (whenIdle = resolve));
        for (const run of runs.values()) run.stop("handed-back");
        await idle;
      }
      stopTick?.();
      stopDue?.();
      return left;
    },
  };
};

export type Runner = ReturnType<typeof createRunner>;
