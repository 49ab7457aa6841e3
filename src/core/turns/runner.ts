import { runCompaction } from "#core/sessions/compaction.ts";
import { leaseOfClaims, Worker } from "#core/worker.ts";
import { newId } from "#kit/ids.ts";
import { Stop } from "#kit/stop-signal.ts";
import type { Claim, ClaimedTurn, ClaimRequest } from "#store/store.ts";
import { Attempt, type AttemptParts, reportTrouble } from "./attempt.ts";
import { reportRefusal } from "./budget-refusals.ts";
import { type StopReason, TurnWatches } from "./turn-watch.ts";

/** The limit of concurrent compactions of an agent. The limits of concurrency count only turns with messages. */
const COMPACTIONS_AT_ONCE = 8;
/** The most turns of one claim. */
const CLAIMED_AT_ONCE = 64;
/** The time for which a stop is remembered if the turn does not run here: its run may be about to start, or the turn runs on another gateway. */
const EARLY_STOP_MS = 5_000;

/** A turn that runs here. */
type Run = { claimed: ClaimedTurn; claim: Claim; stop: Stop };

/**
 * Claims turns and runs them: one at a time per session (the store ensures this), at most `concurrency` in total, and at most the agent's limit for
 * each agent. An agent at its limit delays only its own turns.
 */
export class Runner {
  readonly #parts: AttemptParts;
  readonly #worker: Worker<Run>;
  readonly #leaseMs: number;
  readonly #runningOf = new Map<string, number>();
  /** The number of running compactions of each agent. */
  readonly #compactingOf = new Map<string, number>();
  /** Stops that were received between a turn's claim and its run. */
  readonly #earlyStops = new Map<string, StopReason>();
  /** Agents that were at their limit when turns were claimed. A freed place must start a new claim, because nothing else announces their queued turns. */
  readonly #full = new Set<string>();
  #taken = 0;
  /** The time until a turn can be claimed, as the last claim reported it: 0 if it found turns, Infinity if none is delayed. */
  #emptyMs = 0;

  constructor(parts: Omit<AttemptParts, "watches" | "onTurnEnd">) {
    const { store, clock, events } = parts;
    const lease = leaseOfClaims<Run>(store);
    this.#parts = { ...parts, watches: new TurnWatches(clock), onTurnEnd: (agent) => this.#claimWithEnd(agent) };
    this.#leaseMs = lease.ms;
    this.#worker = new Worker<Run>({
      store,
      clock,
      events,
      name: "runner",
      keyOf: ({ claimed }) => claimed.turn.turnId,
      run: (run) => this.#run(run),
      giveBack: ({ stop }) => stop.abort("handed-back"),
      ended: ({ claimed }) => this.#ended(claimed),
      queue: { operation: "claimTurns", hasRoom: () => this.#placesLeft() > 0, claim: () => this.#claim() },
      lease,
    });
  }

  /** Reserves a place for a turn of this agent and returns the claim for `startTurn`; undefined if pending claims may need all free places. */
  reserve(agent: string): ClaimRequest | undefined {
    const { clock, node } = this.#parts;
    const least = this.#worker.isBehind() ? CLAIMED_AT_ONCE : 0;
    if (this.#worker.state() !== "running" || this.#placesLeft() <= least || this.#freeOf(agent) <= least)
      return undefined;
    this.#takePlace(agent);
    const now = clock.now();
    return { now, node, leaseMs: this.#leaseMs, replyMessageId: newId("msg", now) };
  }

  /** Frees a place: its turn has ended, or none was claimed for it. */
  free(agent: string): void {
    this.#taken--;
    this.#runningOf.set(agent, this.runningOf(agent) - 1);
    if (this.#full.delete(agent) || this.#worker.isWanted() || this.#worker.state() !== "running") this.wake();
  }

  /** Runs a turn whose place was reserved. */
  begin(claimed: ClaimedTurn): void {
    this.#worker.begin(runOf(claimed));
  }

  wake(): void {
    this.#worker.wake();
  }

  /** Claims turns after at most this time. */
  wakeIn(ms?: number): void {
    this.#worker.wakeIn(ms);
  }

  stop(turnId: string, reason: StopReason): void {
    const run = this.#worker.get(turnId);
    run?.stop.abort(reason);
    if (run) return;
    this.#earlyStops.set(turnId, reason);
    this.#parts.clock.after(EARLY_STOP_MS, () => this.#earlyStops.delete(turnId));
  }

  running(): number {
    return this.#taken;
  }

  runningOf(agent: string): number {
    return this.#runningOf.get(agent) ?? 0;
  }

  /**
   * Stops the runner: lets running turns continue for `ms`, then returns the rest to the queue. Returns their number. Queued turns of a durable store
   * stay queued. Those of a memory store would be lost, so they still run if they can be claimed during this time.
   */
  async drain(ms: number): Promise<number> {
    const { store, watches } = this.#parts;
    const isIdle = () => this.#taken === 0 && this.#compactingOf.size === 0;
    const isDone = () => isIdle() && (store.durable || this.#emptyMs > ms);
    if (!store.durable) this.wake();
    const left = await this.#worker.drain({ ms, isIdle, isDone });
    watches.close();
    return left;
  }

  #placesLeft(): number {
    return this.#parts.settings().concurrency - this.#taken;
  }

  #freeOf(name: string): number {
    const agent = this.#parts.agents.find(name);
    return agent ? agent.concurrency - this.runningOf(name) : 0;
  }

  #takePlace(agent: string): void {
    this.#taken++;
    this.#runningOf.set(agent, this.runningOf(agent) + 1);
  }

  /** A durable store runs the calls of one tick in one transaction, so the next turn of the session starts with the commit of this end. */
  #claimWithEnd(agent: string): void {
    const { store } = this.#parts;
    const hasRoom = this.#placesLeft() > 0 && this.#freeOf(agent) > 0;
    if (!store.durable || !hasRoom) return;
    const { queued, grouped = 0 } = store.agentCounts(agent);
    if (queued > grouped) this.wake();
  }

  async #claim() {
    const { store, clock, node } = this.#parts;
    const free = Math.min(this.#placesLeft(), CLAIMED_AT_ONCE);
    /** The remaining places of each agent for this claim. */
    const freeOf = new Map<string, number>();
    const { turns, nextDueInMs, refusedBy } = await store.claimTurns({
      now: clock.now(),
      node,
      leaseMs: this.#leaseMs,
      free,
      freeOf: (name, lane) => {
        if (lane === "compact") return this.#freeToCompact(name);
        const places = this.#freeOf(name);
        freeOf.set(name, places);
        return places;
      },
      newMessageId: () => newId("msg", clock.now()),
      closesGroups: !store.durable && this.#worker.state() === "draining",
    });
    this.#emptyMs = turns.length > 0 ? 0 : (nextDueInMs ?? Infinity);
    for (const budget of refusedBy ?? []) reportRefusal(this.#parts, budget);
    let mayBeMore = turns.length === free;
    for (const { turn, task } of turns) {
      if (task?.kind === "compact") {
        this.#countCompaction(turn.agent, 1);
        continue;
      }
      this.#takePlace(turn.agent);
      freeOf.set(turn.agent, (freeOf.get(turn.agent) ?? 0) - 1);
    }
    for (const [name, places] of freeOf) {
      if (places > 0) continue;
      // The limit of the agent may have left turns in the queue. If a place was freed during the claim, another claim is necessary.
      if (this.#freeOf(name) > 0) mayBeMore = true;
      else this.#full.add(name);
    }
    return { works: turns.map(runOf), mayBeMore, nextDueInMs };
  }

  #freeToCompact(name: string): number {
    return this.#parts.agents.find(name) ? COMPACTIONS_AT_ONCE - (this.#compactingOf.get(name) ?? 0) : 0;
  }

  #countCompaction(agent: string, by: 1 | -1): void {
    const running = (this.#compactingOf.get(agent) ?? 0) + by;
    if (running === 0) this.#compactingOf.delete(agent);
    else this.#compactingOf.set(agent, running);
  }

  #ended({ turn, task }: ClaimedTurn): void {
    if (task?.kind === "compact") {
      this.#countCompaction(turn.agent, -1);
      this.wake();
    } else this.free(turn.agent);
  }

  #run({ claimed, stop }: Run): Promise<void> {
    const { turnId, agent: name } = claimed.turn;
    const reason = this.#earlyStops.get(turnId);
    if (reason) stop.abort(reason);
    if (claimed.task?.kind === "compact") return runCompaction(this.#parts, claimed, claimed.task, stop);
    const agent = this.#parts.agents.find(name);
    return agent ? new Attempt(this.#parts, claimed, agent, stop).run() : returnTurn(this.#parts, claimed);
  }
}

function runOf(claimed: ClaimedTurn): Run {
  return { claimed, claim: claimed.claim, stop: new Stop() };
}

/** Returns a turn whose agent was removed from the configuration after the claim. The turns of the agent fail once no gateway has it configured. */
async function returnTurn(parts: AttemptParts, { claim, turn }: ClaimedTurn): Promise<void> {
  try {
    await parts.store.releaseTurn(claim, { now: parts.clock.now(), delayMs: 0, usage: undefined });
  } catch (error) {
    reportTrouble(parts, turn, error);
  }
}
