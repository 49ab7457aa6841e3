import { setImmediate as nextTick } from "node:timers/promises";
import type { Agent } from "#core/agents/agents.ts";
import { createWorker, leaseMsOf, type Worker } from "#core/worker.ts";
import { GatewayError } from "#kit/errors.ts";
import { newId } from "#kit/ids.ts";
import { Stop } from "#kit/stop-signal.ts";
import { IN_STRETCHES_FROM } from "#kit/utf8.ts";
import type { Claim, ClaimedTurn, ClaimRequest } from "#store/store.ts";
import { type AttemptParts, endRemoved, type Run, runAttempt } from "./attempt.ts";
import type { StopReason } from "./run-turn.ts";

/** Turns that are claimed in one go. */
const CLAIMED_AT_ONCE = 64;
/** The log's `store.failed` has what comes of these. */
const STORE_TROUBLE: ReadonlySet<string> = new Set(["store-unavailable", "store-full"]);
/** How long a stop waits for a run that is about to begin; it may be meant for another node. */
const EARLY_STOP_MS = 5_000;

export type RunnerParts = AttemptParts & { concurrency: () => number };

/** A place for a turn that is about to be stored: its claim for `startTurn`, and how the place is given back where nothing was claimed. */
export type Place = { claim: ClaimRequest; free: () => void };

/**
 * Claims turns and runs them: one at a time in a session (the store sees to that), at most `concurrency` in all and as many of an
 * agent as the agent says. A full agent makes only its own turns wait.
 */
export const createRunner = (parts: RunnerParts) => {
  const { store, agents, clock, concurrency } = parts;
  const node = newId("node", clock.now());
  const leaseMs = leaseMsOf(store);
  const runningOf = new Map<string, number>();
  /** Stops that came between a turn's claim and its run. */
  const earlyStops = new Map<string, StopReason>();
  /** Agents that had no place when turns were claimed: some of theirs may be ready, and nobody will tell of them again. */
  const full = new Set<string>();
  let state: "running" | "draining" | "stopped" = "running";
  let taken = 0;

  const freeOf = (name: string): number => {
    const agent = agents.find(name);
    return agent ? agent.concurrency - (runningOf.get(name) ?? 0) : 0;
  };
  const takePlace = (name: string): void => {
    taken++;
    runningOf.set(name, (runningOf.get(name) ?? 0) + 1);
  };
  const freePlace = (name: string): void => {
    taken--;
    runningOf.set(name, (runningOf.get(name) ?? 0) - 1);
    if (full.delete(name) || worker.isBehind() || state !== "running") worker.wake();
  };

  const claim = async () => {
    const { turns, nextDueInMs } = await store.claimTurns({
      now: clock.now(),
      node,
      leaseMs,
      free: Math.min(concurrency() - taken, CLAIMED_AT_ONCE),
      freeOf: (name) => {
        const free = freeOf(name);
        if (free < 1) full.add(name);
        return free;
      },
      newMessageId: () => newId("msg", clock.now()),
    });
    for (const { turn } of turns) takePlace(turn.agent);
    return { works: turns.map(runOf), mayBeMore: turns.length > 0, nextDueInMs };
  };

  const worker: Worker<Run> = createWorker<Run>({
    ...{ clock, events: parts.events, name: "runner" },
    keyOf: ({ claimed }) => claimed.turn.turnId,
    run: (run) => {
      const { turnId, agent } = run.claimed.turn;
      const reason = state === "stopped" ? "handed-back" : earlyStops.get(turnId);
      if (reason) run.stop.abort(reason);
      return runClaimed(parts, run, agents.find(agent));
    },
    ended: ({ claimed }) => freePlace(claimed.turn.agent),
    queue: {
      operation: "claimTurns",
      mayClaim: () => (state === "running" || (state === "draining" && !store.durable)) && taken < concurrency(),
      claim,
    },
    lease: {
      operation: "extendClaims",
      ms: leaseMs,
      extend: async (runs) => {
        const lost = await store.extendClaims(
          runs.map(({ claimed }) => claimed.claim),
          leaseMs,
        );
        return runs.filter(({ claimed }) => lost.some((claim) => isSame(claim, claimed.claim)));
      },
      // What it writes here would be thrown away.
      lost: ({ stop }) => stop.abort("handed-back"),
    },
  });

  const hasClaimable = ({ name }: Agent): boolean => {
    const { queued, pausedAt } = store.agentCounts(name);
    return queued > 0 && pausedAt === undefined;
  };

  return {
    node,
    /** A place for a turn of this agent, when there is one that no claim under way may take. */
    reserve(agent: string): Place | undefined {
      const least = worker.isBehind() ? CLAIMED_AT_ONCE : 0;
      if (state !== "running" || concurrency() - taken <= least || freeOf(agent) <= least) return undefined;
      takePlace(agent);
      const now = clock.now();
      return {
        claim: { now, node, leaseMs, replyMessageId: newId("msg", now) },
        free: () => freePlace(agent),
      };
    },
    /** Runs a turn whose place was reserved. */
    begin: (claimed: ClaimedTurn): void => worker.begin(runOf(claimed)),
    wake: worker.wake,
    stop(turnId: string, reason: StopReason): void {
      const run = worker.get(turnId);
      run?.stop.abort(reason);
      if (run) return;
      earlyStops.set(turnId, reason);
      clock.after(EARLY_STOP_MS, () => earlyStops.delete(turnId));
    },
    running: () => taken,
    runningOf: (agent: string) => runningOf.get(agent) ?? 0,
    /**
     * Takes no new turns of a durable store (those of one that forgets are run as long as there is time), lets what runs go on for
     * `ms`, then gives the rest back. Answers how many were given back.
     */
    async drain(ms: number): Promise<number> {
      state = "draining";
      const isIdle = () => taken === 0 && worker.isIdle();
      await worker.until(() => isIdle() && (store.durable || !agents.list().some(hasClaimable)), ms);
      state = "stopped";
      const left = worker.all();
      for (const { stop } of left) stop.abort("handed-back");
      await worker.until(isIdle, Number.POSITIVE_INFINITY);
      worker.stop();
      return left.length;
    },
  };
};

export type Runner = ReturnType<typeof createRunner>;

const runOf = (claimed: ClaimedTurn): Run => ({ claimed, stop: new Stop() });

const isSame = (a: Claim, b: Claim): boolean => a.turnId === b.turnId && a.fence === b.fence;

const runClaimed = async (parts: AttemptParts, run: Run, agent: Agent | undefined): Promise<void> => {
  const { message, turn } = run.claimed;
  try {
    // To keep a large message took a while, and so will its reply.
    if (message.text.length > IN_STRETCHES_FROM) await nextTick();
    await (agent ? runAttempt(parts, run, agent) : endRemoved(parts, run.claimed));
  } catch (error) {
    const { name } = GatewayError.from(error);
    // Past its lease it runs again, wherever the store is by then.
    if (STORE_TROUBLE.has(name)) parts.events.storeFailed({ operation: "runTurn", error });
    else parts.events.unexpectedError({ error, where: "runner" });
    // A store that is away comes back, but room has to be made by somebody.
    if (name === "store-full") parts.journal.turnUnkept(turn.turnId);
  }
};
