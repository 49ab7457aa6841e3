import type { Agent } from "#core/agents/agents.ts";
import { GATEWAY_STORED_ENTRIES } from "#core/gateway-stream.ts";
import { keepTrying, leaseMsOf, Worker } from "#core/worker.ts";
import { BATCH, type BeatParts, type HeldBeat, holdBeat, leaveBeat, runBeat } from "./beat.ts";

/** The longest time until the next beat if a beat left events queued. */
const LEFTOVER_BEAT_MS = 60_000;
/** The longest wait between two checks for due beats, so that a wrong wall clock delays beats at most for this time. */
const LONGEST_WAIT_MS = 3_600_000;
/** The time that `asyncDispose` waits for the ends of running beats to be stored. */
const LAST_ENDS_MS = 1_000;
const JITTER = 0.1;
/** The interval of an agent whose heartbeat is off. */
const OFF = 0;
const ANY_EVENT = { after: 0, through: Number.MAX_SAFE_INTEGER, limit: 1, bytes: 1 };

/** The result of a request for a beat. `waitingEvents` is the number of events that are not in a turn. */
type BeatStart = { outcome: "started" | "nothing-waiting" | "running" | "paused"; waitingEvents: number };

/**
 * The beats of all agents. A gateway that claims a due beat sends the waiting events to the agent. The beats of an agent do not overlap. If
 * several beats of an agent were missed, they are replaced by one.
 */
export class Heartbeat {
  readonly #parts: BeatParts;
  readonly #worker: Worker<HeldBeat>;
  readonly #leaseMs: number;
  /** The interval with which each agent's next beat was planned. */
  readonly #planned = new Map<string, number>();
  #isRunning = true;

  constructor(parts: BeatParts) {
    const { store, clock, events } = parts;
    const leaseMs = leaseMsOf(store);
    this.#parts = parts;
    this.#leaseMs = leaseMs;
    this.#worker = new Worker<HeldBeat>({
      store,
      clock,
      events,
      name: "heartbeat",
      keyOf: ({ claim }) => claim.agent,
      run: (beat) => this.#run(beat),
      // The gateway that claims the beat next continues it.
      giveBack: leaveBeat,
      // The next claim also returns the time of the next due beat.
      ended: () => this.#worker.wake(),
      queue: { operation: "claimBeats", hasRoom: () => this.#isRunning, claim: () => this.#claim() },
      lease: {
        operation: "extendBeat",
        ms: leaseMs,
        extend: async (beats) => {
          const isOurs = await Promise.all(beats.map(({ claim }) => store.extendBeat(claim, leaseMs)));
          return beats.filter((_, n) => !isOurs[n]);
        },
      },
    });
  }

  /** Checks for due beats after `ms` milliseconds; at once if it is undefined. */
  expect(ms?: number): void {
    this.#worker.wakeIn(ms);
  }

  /**
   * Plans a beat of the agent for now if events wait for it, no beat runs and the agent is not paused. Any gateway with
   * this agent may claim the beat. Concurrent calls plan the same beat. Throws `agent-not-found`.
   */
  async beatNow(name: string): Promise<BeatStart> {
    const { store, agents, clock } = this.#parts;
    const { name: agent } = agents.get(name);
    const { running } = await store.readBeat(agent);
    // The counts may not include events that another gateway has just queued.
    const [oldest] = await store.readQueuedEvents({ agent, ...ANY_EVENT });
    const waitingEvents = oldest ? Math.max(store.agentCounts(agent).waitingEvents, 1) : 0;
    if (store.agentCounts(agent).pausedAt !== undefined) return { outcome: "paused", waitingEvents };
    if (running) return { outcome: "running", waitingEvents };
    if (!oldest) return { outcome: "nothing-waiting", waitingEvents };
    await store.planBeat(agent, { now: clock.now(), delayMs: 0, soonest: true });
    return { outcome: "started", waitingEvents };
  }

  /** Plans the beats of the current configuration. If the store fails, the next claim plans them. */
  async reconfigure(): Promise<void> {
    await this.#plan().catch((error: unknown) => this.#parts.events.storeFailed({ operation: "planBeat", error }));
    this.#worker.wake();
  }

  /** The reason why the agent's events are delayed; undefined if they are not. */
  delayedBy(agent: string): string | undefined {
    return this.#worker.get(agent)?.delayedBy;
  }

  /** Starts no more beats and turns. Running turns continue. */
  stop(): void {
    this.#isRunning = false;
    for (const beat of this.#worker.all()) beat.stop.abort();
  }

  /** Returns the running beats to the store. A beat whose turn has not ended is due immediately, and any gateway can claim it. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.stop();
    await this.#worker.drain({ ms: 0, lastMs: LAST_ENDS_MS });
  }

  async #claim() {
    const { store, agents, clock, node, inBackground } = this.#parts;
    await this.#plan();
    // In the background, so that all calls of `beatNow` in this tick share a beat.
    const { beats, nextDueInMs = LONGEST_WAIT_MS } = await inBackground(() => {
      const names = agents.list().flatMap(({ name }) => (this.#worker.get(name) ? [] : name));
      return store.claimBeats({ now: clock.now(), node, leaseMs: this.#leaseMs, agents: names });
    });
    const works = beats.map((claim) => holdBeat(claim, clock.monotonic()));
    return { works, nextDueInMs: Math.min(nextDueInMs, LONGEST_WAIT_MS) };
  }

  async #run(beat: HeldBeat): Promise<void> {
    const { agents, clock, events } = this.#parts;
    const { agent } = beat.claim;
    if (!this.#isRunning) beat.stop.abort();
    await runBeat(this.#parts, beat).catch((error: unknown) => events.unexpectedError({ error, where: "heartbeat" }));
    const ms = Math.round(clock.monotonic() - beat.began);
    events.beatRan({ agent, events: beat.events, turns: beat.turnIds.length, returned: beat.returned, ms });
    const every = agents.find(agent)?.heartbeatMs;
    await endBeat(this.#parts, beat);
    // If the interval changed during `endBeat`, the next claim plans the beat again.
    this.#planned.set(agent, every ?? OFF);
  }

  /** Plans the beats of agents whose interval has changed, and removes those of deleted agents. */
  async #plan(): Promise<void> {
    const { store, agents, clock } = this.#parts;
    for (const { name, heartbeatMs: every } of agents.list()) {
      const before = this.#planned.get(name);
      if (before === (every ?? OFF)) continue;
      // A durable store may have a beat that is overdue, because no gateway was running: it keeps its earlier time.
      const soonest = every !== undefined && before === undefined;
      await store.planBeat(name, { now: clock.now(), delayMs: jittered(every), soonest });
      this.#planned.set(name, every ?? OFF);
    }
    for (const name of this.#planned.keys()) {
      if (agents.find(name)) continue;
      // With a shared store, another gateway may still have the agent.
      if (!store.shared) await store.planBeat(name, { now: clock.now(), delayMs: undefined, soonest: false });
      this.#planned.delete(name);
    }
  }
}

/** Stores the end of a beat and the time of the next one. If the store fails, the beat is due again when its lease ends. */
async function endBeat(parts: BeatParts, beat: HeldBeat): Promise<void> {
  const { store, agents, clock } = parts;
  const { events, turnIds, claim } = beat;
  const delayMs = delayAfter(beat, agents.find(claim.agent), store.agentCounts(claim.agent).waitingEvents);
  const ran = turnIds.length > 0 ? { events, turnIds } : undefined;
  const end = () => store.endBeat(claim, { now: clock.now(), delayMs, ran, streamKeep: GATEWAY_STORED_ENTRIES });
  await keepTrying(parts, "endBeat", end, () => !beat.leave.signal.aborted).catch(() => {});
}

/** The time until the next beat of an agent. Undefined if no further beat is planned. */
function delayAfter(beat: HeldBeat, agent: Agent | undefined, waitingEvents: number): number | undefined {
  if (!agent) return undefined;
  if (beat.stop.signal.aborted && !beat.isDone) return 0;
  // An early beat causes no additional calls to the backend: full batches need the same number of turns now or later.
  const hasMore = beat.events > 0 && waitingEvents > BATCH.limit;
  if (hasMore && beat.returned === 0 && agent.heartbeatMs !== undefined) return 0;
  const next = jittered(agent.heartbeatMs);
  const leftEvents = !beat.isDone || (beat.returned > 0 && next === undefined);
  return leftEvents ? Math.min(next ?? LEFTOVER_BEAT_MS, LEFTOVER_BEAT_MS) : next;
}

/** Adds up to 10 % to an interval, so that the beats of agents and gateways that started together spread out. */
function jittered(every: number | undefined): number | undefined {
  return every === undefined ? undefined : Math.round(every * (1 + JITTER * Math.random()));
}
