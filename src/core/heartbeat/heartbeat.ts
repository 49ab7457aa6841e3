import { GATEWAY_STORED_ENTRIES } from "#core/gateway-stream.ts";
import { Worker } from "#core/worker.ts";
import { type BeatParts, jittered, type Starting, startingOf, startNextTurn } from "./beat.ts";

/** The longest wait between two checks for due beats, so that a wrong wall clock delays beats at most for this time. */
const LONGEST_WAIT_MS = 3_600_000;
/** The time that `asyncDispose` waits for turns that are about to be stored. */
const LAST_STARTS_MS = 1_000;
/** The interval of an agent whose heartbeat is off. */
const OFF = 0;
const ANY_EVENT = { after: 0, through: Number.MAX_SAFE_INTEGER, limit: 1, bytes: 1 };

/** The result of a request for a beat. `waitingEvents` is the number of events that are not in a turn. */
type BeatStart = { outcome: "started" | "nothing-waiting" | "running" | "paused"; waitingEvents: number };

/**
 * The beats of all agents. A beat is one turn or several successive turns with the waiting events. Any gateway starts the first when the beat
 * is due, and the next when the previous turn has ended. The beats of an agent do not overlap. Several missed beats are replaced by one.
 */
export class Heartbeat {
  readonly #parts: BeatParts;
  readonly #worker: Worker<Starting>;
  /** The interval with which each agent's next beat was planned. */
  readonly #planned = new Map<string, number>();
  #isRunning = true;

  constructor(parts: BeatParts) {
    const { store, clock, events } = parts;
    this.#parts = parts;
    this.#worker = new Worker<Starting>({
      store,
      clock,
      events,
      name: "heartbeat",
      keyOf: ({ agent }) => agent,
      run: (starting) => this.#run(starting),
      giveBack: ({ stop }) => stop.abort(),
      // The next check also returns the time of the next due beat.
      ended: () => this.#worker.wake(),
      queue: { operation: "dueBeats", hasRoom: () => this.#isRunning, claim: () => this.#claim() },
    });
  }

  /** Checks for due beats after `ms` milliseconds; at once if it is undefined. */
  expect(ms?: number): void {
    this.#worker.wakeIn(ms);
  }

  /**
   * Plans a beat of the agent for now if events wait for it, no beat runs and the agent is not paused. Any gateway with
   * this agent may start its turn. Concurrent calls plan the same beat. Throws `agent-not-found`.
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
    for (const { stop } of this.#worker.all()) stop.abort();
  }

  /** Stops starting turns. An unfinished beat continues on any gateway that finds it due. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.stop();
    await this.#worker.drain({ ms: 0, lastMs: LAST_STARTS_MS });
  }

  async #claim() {
    const { store, agents, inBackground } = this.#parts;
    await this.#plan();
    // In the background, so that all calls of `beatNow` in this tick share a beat.
    const { due, nextDueInMs = LONGEST_WAIT_MS } = await inBackground(() => {
      const names = agents.list().flatMap(({ name }) => (this.#worker.get(name) ? [] : name));
      return store.dueBeats(names);
    });
    return { works: due.map(startingOf), nextDueInMs: Math.min(nextDueInMs, LONGEST_WAIT_MS) };
  }

  async #run(starting: Starting): Promise<void> {
    const { agents, events } = this.#parts;
    const { agent } = starting;
    if (!this.#isRunning) starting.stop.abort();
    const every = agents.find(agent)?.heartbeatMs;
    const step = await startNextTurn(this.#parts, starting);
    if (!step || step.outcome === "not-due") return;
    for (const { eventId, attempts, turnId = "", reason = "" } of step.dead)
      events.eventDead({ eventId, agent, attempts, turnId, reason });
    if (step.outcome === "started") return;
    const { events: count, turns, returned, ms } = step;
    events.beatRan({ agent, events: count, turns, returned, ms });
    // If the interval has changed in the meantime, the next check plans the beat again.
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
      if (!store.shared) await store.removeBeat(name, { now: clock.now(), streamKeep: GATEWAY_STORED_ENTRIES });
      this.#planned.delete(name);
    }
  }
}
