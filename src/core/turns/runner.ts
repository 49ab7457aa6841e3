import type { Agent } from "#core/agents/agents.ts";
import { createWorker, leaseOfClaims, type Worker } from "#core/worker.ts";
import { newId } from "#kit/ids.ts";
import { Stop } from "#kit/stop-signal.ts";
import type { Claim, ClaimedTurn, ClaimRequest } from "#store/store.ts";
import { Attempt, type AttemptParts, reportTrouble } from "./attempt.ts";
import { type StopReason, TurnWatches } from "./turn-watch.ts";

/** Turns that are claimed in one go. */
const CLAIMED_AT_ONCE = 64;
/** The time that a stop waits for a run that is about to begin; it may be meant for another node. */
const EARLY_STOP_MS = 5_000;

/** A turn that runs here. */
type Run = { claimed: ClaimedTurn; claim: Claim; stop: Stop };

/**
 * Claims turns and runs them: one at a time in a session (the store sees to that), at most `concurrency` in all and as many of an
 * agent as the agent says. A full agent makes only its own turns wait.
 */
export function createRunner(given: Omit<AttemptParts, "watches">) {
  const parts: AttemptParts = { ...given, watches: new TurnWatches(given.clock) };
  const { store, agents, clock, node } = parts;
  const concurrency = () => parts.settings().concurrency;
  const lease = leaseOfClaims<Run>(store);
  const leaseMs = lease.ms;
  const runningOf = new Map<string, number>();
  /** Stops that came between a turn's claim and its run. */
  const earlyStops = new Map<string, StopReason>();
  /** Agents that had no place when turns were claimed: some of theirs may be ready, and nobody will tell of them again. */
  const full = new Set<string>();
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
    if (full.delete(name) || worker.isBehind() || worker.state() !== "running") worker.wake();
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
    store,
    clock,
    events: parts.events,
    name: "runner",
    keyOf: ({ claimed }) => claimed.turn.turnId,
    run: (run) => {
      const { turnId, agent } = run.claimed.turn;
      const reason = earlyStops.get(turnId);
      if (reason) run.stop.abort(reason);
      const found = agents.find(agent);
      return found ? new Attempt(parts, run.claimed, found, run.stop).run() : returnTurn(parts, run.claimed);
    },
    giveBack: ({ stop }) => stop.abort("handed-back"),
    ended: ({ claimed }) => freePlace(claimed.turn.agent),
    queue: { operation: "claimTurns", hasRoom: () => taken < concurrency(), claim },
    lease,
  });

  const hasClaimable = ({ name }: Agent): boolean => {
    const { queued, pausedAt } = store.agentCounts(name);
    return queued > 0 && pausedAt === undefined;
  };

  return {
    /** Reserves a place for a turn of this agent and returns the claim for `startTurn`; undefined if pending claims may need all free places. */
    reserve(agent: string): ClaimRequest | undefined {
      const least = worker.isBehind() ? CLAIMED_AT_ONCE : 0;
      if (worker.state() !== "running" || concurrency() - taken <= least || freeOf(agent) <= least) return undefined;
      takePlace(agent);
      const now = clock.now();
      return { now, node, leaseMs, replyMessageId: newId("msg", now) };
    },
    /** Frees a reserved place for which no turn was claimed. */
    free: freePlace,
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
      const isIdle = () => taken === 0;
      const isDone = () => isIdle() && (store.durable || !agents.list().some(hasClaimable));
      const left = await worker.drain({ ms, isIdle, isDone });
      parts.watches.close();
      return left;
    },
  };
}

export type Runner = ReturnType<typeof createRunner>;

function runOf(claimed: ClaimedTurn): Run {
  return { claimed, claim: claimed.claim, stop: new Stop() };
}

/** Returns a turn whose agent was removed from the configuration after the claim. Its turns fail once no gateway has the agent any more. */
async function returnTurn(parts: AttemptParts, { claim, turn }: ClaimedTurn): Promise<void> {
  try {
    await parts.store.releaseTurn(claim, { now: parts.clock.now(), delayMs: 0, usage: undefined });
  } catch (error) {
    reportTrouble(parts, turn, error);
  }
}
