import type { Agent } from "#core/agents/agents.ts";
import { GATEWAY_KEPT_ENTRIES } from "#core/gateway-stream.ts";
import { createWorker, keepTrying, leaseMsOf, type Worker } from "#core/worker.ts";
import { BATCH, type BeatParts, type HeldBeat, holdBeat, leaveBeat, runBeat } from "./beat.ts";

/** How soon it beats again after a beat that left something behind where no other is due sooner. */
const AGAIN_MS = 60_000;
/** No wait is longer: a clock that runs astray does little harm then. */
const LONGEST_WAIT_MS = 3_600_000;
const LAST_ENDS_MS = 1_000;
const JITTER = 0.1;
/** Stands for the pause of an agent that does not beat by itself. */
const OFF = 0;
const ANY_EVENT = { after: 0, through: Number.MAX_SAFE_INTEGER, limit: 1, bytes: 1 };

/** The result of a wish that an agent beats now. `waitingEvents` are in no turn. */
type BeatStart = { outcome: "started" | "nothing-waiting" | "running" | "paused"; waitingEvents: number };

/**
 * The beats of all agents: when one is due, whichever node claims it hands over the agent's events. No agent's beats overlap, and those
 * that were missed are one.
 */
export function createHeartbeat(parts: BeatParts) {
  const { store, agents, clock, events, node, inBackground } = parts;
  const leaseMs = leaseMsOf(store);
  let isRunning = true;

  const claimDue = () => {
    const names = agents.list().flatMap(({ name }) => (worker.get(name) ? [] : name));
    return store.claimBeats({ now: clock.now(), node, leaseMs, agents: names });
  };

  const worker: Worker<HeldBeat> = createWorker<HeldBeat>({
    store,
    clock,
    events,
    name: "heartbeat",
    keyOf: ({ claim }) => claim.agent,
    run: async (beat) => {
      if (!isRunning) beat.stop.abort();
      await runBeat(parts, beat).catch((error: unknown) => events.unexpectedError({ error, where: "heartbeat" }));
      const ms = Math.round(clock.monotonic() - beat.began);
      const { agent } = beat.claim;
      events.beatRan({ agent, events: beat.events, turns: beat.turnIds.length, returned: beat.returned, ms });
      const every = agents.find(agent)?.heartbeatMs;
      await endBeat(parts, beat);
      // The end may have planned the next beat by the configuration before: then the next claim plans it anew.
      planned.set(agent, every ?? OFF);
    },
    // The rest is for the node that has the beat now, or claims it next.
    giveBack: leaveBeat,
    // The next claim tells when the next one is due.
    ended: () => worker.wake(),
    queue: {
      operation: "claimBeats",
      hasRoom: () => isRunning,
      claim: async () => {
        await plan();
        // In the next turn of the loop: all that ask until then share a beat.
        const { beats, nextDueInMs = LONGEST_WAIT_MS } = await inBackground(claimDue);
        const works = beats.map((claim) => holdBeat(claim, clock.monotonic()));
        return { works, nextDueInMs: Math.min(nextDueInMs, LONGEST_WAIT_MS) };
      },
    },
    lease: {
      operation: "extendBeat",
      ms: leaseMs,
      extend: async (beats) => {
        const isOurs = await Promise.all(beats.map(({ claim }) => store.extendBeat(claim, leaseMs)));
        return beats.filter((_, n) => !isOurs[n]);
      },
    },
  });

  /** The pause that each agent's next beat was planned with. */
  const planned = new Map<string, number>();

  /** Plans the configured beats that were not planned yet. */
  const plan = async (): Promise<void> => {
    for (const { name, heartbeatMs: every } of agents.list()) {
      const before = planned.get(name);
      if (before === (every ?? OFF)) continue;
      // A store that outlives its process may know of a beat that was missed meanwhile.
      const soonest = every !== undefined && before === undefined;
      await store.planBeat(name, { now: clock.now(), delayMs: jittered(every), soonest });
      planned.set(name, every ?? OFF);
    }
    for (const name of planned.keys()) {
      if (agents.find(name)) continue;
      // With a shared store, another gateway may still have the agent.
      if (!store.shared) await store.planBeat(name, { now: clock.now(), delayMs: undefined, soonest: false });
      planned.delete(name);
    }
  };

  const stop = (): void => {
    isRunning = false;
    for (const beat of worker.all()) beat.stop.abort();
  };

  return {
    /** Some beat is due in so long: sooner, maybe, than was planned. */
    expect: worker.wakeIn,

    /**
     * Plans a beat of the agent for now if events wait for it, none runs and it is not paused. Any gateway that has the agent claims it.
     * Two gateways that see no beat at once plan the same one. Throws `agent-not-found`.
     */
    async beatNow(name: string): Promise<BeatStart> {
      const { name: agent } = agents.get(name);
      const { running } = await store.readBeat(agent);
      // The counters may not know yet what another gateway has queued.
      const [oldest] = await store.readQueuedEvents({ agent, ...ANY_EVENT });
      const waitingEvents = oldest ? Math.max(store.agentCounts(agent).waitingEvents, 1) : 0;
      if (store.agentCounts(agent).pausedAt !== undefined) return { outcome: "paused", waitingEvents };
      if (running) return { outcome: "running", waitingEvents };
      if (!oldest) return { outcome: "nothing-waiting", waitingEvents };
      await store.planBeat(agent, { now: clock.now(), delayMs: 0, soonest: true });
      return { outcome: "started", waitingEvents };
    },

    /** Takes the agents over as they are now; resolves when their beats are planned. What the store fails to plan the next claim plans. */
    async reconfigure(): Promise<void> {
      await plan().catch((error: unknown) => events.storeFailed({ operation: "planBeat", error }));
      worker.wake();
    },

    /** Why the events of an agent cannot be handed over now; undefined when they can. */
    delayedBy: (agent: string): string | undefined => worker.get(agent)?.delayedBy,

    /** Begins no beat and no turn any more; turns that run go on. */
    stop,

    /** Gives back what is held: beats whose turns have not ended are due at once, wherever they are claimed. */
    async close(): Promise<void> {
      stop();
      await worker.drain({ ms: 0, lastMs: LAST_ENDS_MS });
    },
  };
}

export type Heartbeat = ReturnType<typeof createHeartbeat>;

/** Keeps a beat's end, and when the next one is due. Where the store could not, its lease ends, and it is due again then. */
async function endBeat(parts: BeatParts, beat: HeldBeat): Promise<void> {
  const { store, agents, clock } = parts;
  const { events, turnIds, claim } = beat;
  const delayMs = delayAfter(beat, agents.find(claim.agent), store.agentCounts(claim.agent).waitingEvents);
  const ran = turnIds.length > 0 ? { events, turnIds } : undefined;
  const end = () => store.endBeat(claim, { now: clock.now(), delayMs, ran, streamKeep: GATEWAY_KEPT_ENTRIES });
  await keepTrying(parts, "endBeat", end, () => !beat.leave.signal.aborted).catch(() => {});
}

/** The time until the next beat of an agent; undefined if it beats only when it is told to. */
function delayAfter(beat: HeldBeat, agent: Agent | undefined, waitingEvents: number): number | undefined {
  if (!agent) return undefined;
  if (beat.stop.signal.aborted && !beat.isDone) return 0;
  // No backend is asked more often for it: events that fill turns need as many turns whenever they are handed over.
  const hasMore = beat.events > 0 && waitingEvents > BATCH.limit;
  if (hasMore && beat.returned === 0 && agent.heartbeatMs !== undefined) return 0;
  const next = jittered(agent.heartbeatMs);
  const isStranded = !beat.isDone || (beat.returned > 0 && next === undefined);
  return isStranded ? Math.min(next ?? AGAIN_MS, AGAIN_MS) : next;
}

/** Up to a tenth more, so that agents and nodes that began together do not beat together. */
function jittered(every: number | undefined): number | undefined {
  return every === undefined ? undefined : Math.round(every * (1 + JITTER * Math.random()));
}
