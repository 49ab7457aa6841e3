import type { Agent, Agents } from "#core/agents/agents.ts";
import { GATEWAY_KEPT_ENTRIES } from "#core/gateway-stream.ts";
import { createWorker, keepTrying, leaseMsOf, type Worker } from "#core/worker.ts";
import type { Beat } from "#store/store.ts";
import { type BeatParts, HeldBeat, runBeat } from "./beat.ts";
import { createBeatPlans, jittered } from "./beat-plans.ts";

/** How soon it beats again after a beat that left something behind where no other is due sooner. */
const AGAIN_MS = 60_000;
/** No wait is longer: a clock that runs astray does little harm then. */
const LONGEST_WAIT_MS = 3_600_000;
const LAST_ENDS_MS = 1_000;
const ANY_EVENT = { after: 0, through: Number.MAX_SAFE_INTEGER, limit: 1, bytes: 1 };

/** What came of the wish that an agent beats now. `waitingEvents` are in no turn. */
export type BeatStart = { outcome: "started" | "nothing-waiting" | "running" | "paused"; waitingEvents: number };

type HeartbeatParts = BeatParts & { agents: Agents; node: string };

/**
 * The beats of all agents: when one is due, whichever node claims it hands over the agent's events. No agent's beats overlap, and those
 * that were missed are one.
 */
export const createHeartbeat = (parts: HeartbeatParts) => {
  const { store, agents, clock, events, node, inBackground } = parts;
  const leaseMs = leaseMsOf(store);
  let isRunning = true;

  const claimDue = () => {
    const names = agents.list().flatMap(({ name }) => (worker.get(name) ? [] : name));
    return store.claimBeats({ now: clock.now(), node, leaseMs, agents: names });
  };

  const worker: Worker<HeldBeat> = createWorker<HeldBeat, number | undefined>({
    ...{ clock, events, name: "heartbeat" },
    keyOf: ({ claim }) => claim.agent,
    run: async (beat) => {
      if (!isRunning) beat.stop();
      await runBeat(parts, beat).catch((error: unknown) => events.unexpectedError({ error, where: "heartbeat" }));
      const ms = Math.round(clock.monotonic() - beat.began);
      const { agent } = beat.claim;
      events.beatRan({ agent, events: beat.events, turns: beat.turnIds.length, returned: beat.returned, ms });
      const every = agents.find(agent)?.heartbeatMs;
      const ended = await endBeat(parts, beat);
      if (agents.find(agent)?.heartbeatMs !== every) {
        plans.planAgain(agent);
        return undefined;
      }
      return ended && ended.nextAt !== undefined ? ended.nextAt - clock.now() : undefined;
    },
    // Of the next one it is known when that is due.
    ended: (_, nextInMs = 0) => worker.wakeIn(plans.hasGone() ? 0 : nextInMs),
    queue: {
      operation: "claimBeats",
      mayClaim: () => isRunning,
      claim: async () => {
        // In the next turn of the loop: all that ask until then share a beat.
        const { beats, nextDueInMs = LONGEST_WAIT_MS } = await inBackground(claimDue);
        void plans.giveUpGone();
        const works = beats.map((claim) => new HeldBeat(claim, clock.monotonic()));
        return { works, mayBeMore: false, nextDueInMs: Math.min(nextDueInMs, LONGEST_WAIT_MS) };
      },
    },
    lease: {
      operation: "extendBeat",
      ms: leaseMs,
      extend: async (beats) => {
        const isOurs = await Promise.all(beats.map(({ claim }) => store.extendBeat(claim, leaseMs)));
        return beats.filter((_, n) => !isOurs[n]);
      },
      // What is left is for the node that has it now.
      lost: (beat) => beat.leave(),
    },
  });
  const plans = createBeatPlans({ ...parts, wakeIn: worker.wakeIn });

  const stop = (): void => {
    isRunning = false;
    plans.stop();
    for (const beat of worker.all()) beat.stop();
  };

  return {
    /** Some beat is due in so long: sooner, maybe, than was planned. */
    expect: (dueInMs = 0): void => worker.wakeIn(dueInMs),

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

    /** Takes the agents over as they are now; resolves when their beats are planned, and the events of those that are gone are dead. */
    async reconfigure(): Promise<void> {
      await plans.plan();
      await plans.giveUpGone();
    },

    /** Why the events of an agent cannot be handed over now; undefined when they can. */
    delayedBy: (agent: string): string | undefined => worker.get(agent)?.delayedBy,

    giveUp: plans.giveUp,
    leave: plans.leave,

    /** Begins no beat and no turn any more; turns that run go on. */
    stop,

    /** Gives back what is held: beats whose turns have not ended are due at once, wherever they are claimed. */
    async close(): Promise<void> {
      stop();
      for (const beat of worker.all()) beat.leave();
      await worker.until(worker.isIdle, LAST_ENDS_MS);
      worker.stop();
    },
  };
};

export type Heartbeat = ReturnType<typeof createHeartbeat>;

/** Keeps a beat's end, and when the next one is due. False where the store could not: its lease ends, and it is due again then. */
const endBeat = (parts: HeartbeatParts, beat: HeldBeat): Promise<Beat | false> => {
  const { store, agents, clock } = parts;
  const { events, turnIds, claim } = beat;
  const delayMs = delayAfter(beat, agents.find(claim.agent));
  const ran = turnIds.length > 0 ? { events, turnIds } : undefined;
  const end = () => store.endBeat(claim, { now: clock.now(), delayMs, ran, streamKeep: GATEWAY_KEPT_ENTRIES });
  return keepTrying(parts, "endBeat", end, () => !beat.left.aborted).catch(() => false);
};

/** How long until the next beat of an agent; undefined where it beats only when it is told to. */
const delayAfter = (beat: HeldBeat, agent: Agent | undefined): number | undefined => {
  if (!agent) return undefined;
  if (beat.stopped.aborted && !beat.isDone) return 0;
  // Nobody is asked more often for it: what fills turns is as many turns whenever it is handed over.
  if (beat.hasMore && beat.returned === 0 && agent.heartbeatMs !== undefined) return 0;
  const next = jittered(agent.heartbeatMs);
  const isStranded = !beat.isDone || (beat.returned > 0 && next === undefined);
  return isStranded ? Math.min(next ?? AGAIN_MS, AGAIN_MS) : next;
};
