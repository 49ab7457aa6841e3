import type { Agent, Agents } from "#core/agents/agents.ts";
import { GATEWAY_KEPT_ENTRIES } from "#core/gateway-stream.ts";
import { leaseMsOf } from "#core/leases.ts";
import type { Beat, BeatClaim } from "#store/store.ts";
import { type BeatParts, HeldBeat, rest, runBeat } from "./beat.ts";

const JITTER = 0.1;
/** How soon it beats again after a beat that left something behind where no other is due sooner. */
const AGAIN_MS = 60_000;
const RETRY_MS = 1_000;
const END_TRIES = 5;
/** No wait is longer, so that none passes what a timer can hold, and a clock that runs astray does little harm. */
const LONGEST_WAIT_MS = 3_600_000;
/** Events of a removed agent that are given up at a time. */
const GIVEN_UP = 100;
/** Stands for the pause of a plan that is to be made again. */
const OUTDATED = -1;
const LAST_ENDS_MS = 1_000;
const ANY_EVENT = { after: 0, through: Number.MAX_SAFE_INTEGER, limit: 1, bytes: 1 };

/** What came of the wish that an agent beats now. `waitingEvents` are in no turn. */
export type BeatStart = { outcome: "started" | "nothing-waiting" | "running" | "paused"; waitingEvents: number };

/**
 * The beats of all agents: when one is due, whichever node claims it hands over the agent's events. No agent's beats overlap, and those
 * that were missed are one.
 */
export const createHeartbeat = (parts: BeatParts & { agents: Agents; node: string }) => {
  const { store, agents, clock, events, node, inSlice } = parts;
  const leaseMs = leaseMsOf(store);
  const held = new Map<string, { beat: HeldBeat; ended: Promise<void> }>();
  /** The pause that each agent's next beat was planned with. */
  const planned = new Map<string, number | undefined>();
  /** Agents that left the configuration while this process ran. */
  const gone = new Set<string>();
  let state: "running" | "stopping" | "closed" = "running";
  let wanted = false;
  let looking = false;
  let stopTimer = () => {};
  /** When it looks again (monotonic). */
  let looksAt = 0;
  let stopTick: (() => void) | undefined;
  let stopRetry = () => {};
  let planning = Promise.resolve();
  let givingUp = Promise.resolve();

  const wake = (): void => {
    wanted = true;
    if (looking || state !== "running") return;
    looking = true;
    void look();
  };

  const look = async (): Promise<void> => {
    try {
      while (wanted && state === "running") {
        // In the next turn of the loop: all that ask until then share a beat.
        const { beats, nextDueInMs = LONGEST_WAIT_MS } = await inSlice(claimDue);
        for (const claim of beats) begin(claim);
        waitFor(Math.min(nextDueInMs, LONGEST_WAIT_MS));
        void giveUpGone();
      }
    } catch (error) {
      events.storeFailed({ operation: "claimBeats", error });
      waitFor(RETRY_MS);
    } finally {
      looking = false;
    }
  };

  const claimDue = () => {
    wanted = false;
    stopTimer();
    const names = agents.list().flatMap(({ name }) => (held.has(name) ? [] : name));
    return store.claimBeats({ now: clock.now(), node, leaseMs, agents: names });
  };

  /** Some beat is due in so long: sooner, maybe, than was planned. */
  const expect = (dueInMs = 0): void => {
    if (dueInMs <= 0 || looking) wake();
    else if (clock.monotonic() + dueInMs < looksAt) waitFor(dueInMs);
  };

  const waitFor = (ms: number): void => {
    stopTimer();
    looksAt = clock.monotonic() + ms;
    if (state === "running") stopTimer = clock.after(ms, wake);
  };

  const begin = (claim: BeatClaim): void => {
    const beat = new HeldBeat(claim, clock.monotonic());
    if (state !== "running") beat.stop();
    const ended = hold(beat).then((next) => {
      held.delete(claim.agent);
      // Of the next one it is known when that is due.
      if (next === undefined || gone.size > 0) wake();
      else expect(next);
    });
    held.set(claim.agent, { beat, ended });
    stopTick ??= clock.after(leaseMs / 3, tick);
  };

  /** Answers how long until the agent's next beat, as far as is known. */
  const hold = async (beat: HeldBeat): Promise<number | undefined> => {
    try {
      await runBeat(parts, beat);
    } catch (error) {
      events.unexpectedError({ error, where: "heartbeat" });
    }
    const { agent } = beat.claim;
    const ms = Math.round(clock.monotonic() - beat.began);
    events.beatRan({ agent, events: beat.events, turns: beat.turnIds.length, returned: beat.returned, ms });
    const every = agents.find(agent)?.heartbeatMs;
    const ended = await end(beat, delayAfter(beat, agents.find(agent)));
    // Another configuration came while the end was being kept: what it planned may be lost.
    if (agents.find(agent)?.heartbeatMs !== every) {
      planned.set(agent, OUTDATED);
      void plan();
      return undefined;
    }
    return ended && ended.nextAt !== undefined ? ended.nextAt - clock.now() : undefined;
  };

  const end = async (beat: HeldBeat, delayMs: number | undefined): Promise<Beat | false> => {
    const { events: count, turnIds } = beat;
    const ran = turnIds.length > 0 ? { events: count, turnIds } : undefined;
    for (let tries = 1; ; tries++) {
      try {
        return await store.endBeat(beat.claim, { now: clock.now(), delayMs, ran, streamKeep: GATEWAY_KEPT_ENTRIES });
      } catch (error) {
        events.storeFailed({ operation: "endBeat", error });
        // Its lease ends, and it is due again then.
        if (tries === END_TRIES || beat.left.aborted) return false;
        await rest(clock, RETRY_MS * tries, beat.left);
      }
    }
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

  const tick = (): void => {
    stopTick = held.size > 0 ? clock.after(leaseMs / 3, tick) : undefined;
    for (const { beat } of held.values()) {
      store.extendBeat(beat.claim, leaseMs).then(
        (isOurs) => {
          // Another node has it: what is left is for that one.
          if (!isOurs) beat.leave();
        },
        (error: unknown) => events.storeFailed({ operation: "extendBeat", error }),
      );
    }
  };

  /** Plans what the configuration says and was not planned yet. Never throws: what the store could not take is planned again. */
  const plan = (): Promise<void> => {
    planning = planning.then(planAll).catch((error: unknown) => {
      events.storeFailed({ operation: "planBeat", error });
      stopRetry();
      if (state === "running") stopRetry = clock.after(RETRY_MS, () => void plan());
    });
    return planning;
  };

  const planAll = async (): Promise<void> => {
    for (const { name, heartbeatMs } of agents.list()) {
      if (planned.has(name) && planned.get(name) === heartbeatMs) continue;
      // A store that outlives its process may know of a beat that was missed meanwhile.
      const soonest = heartbeatMs !== undefined && !planned.has(name);
      await store.planBeat(name, { now: clock.now(), delayMs: jittered(heartbeatMs), soonest });
      planned.set(name, heartbeatMs);
      gone.delete(name);
    }
    for (const name of planned.keys()) {
      if (agents.find(name)) continue;
      if (store.shared) {
        // Another gateway may have it still.
        planned.delete(name);
        continue;
      }
      gone.add(name);
      await store.planBeat(name, { now: clock.now(), delayMs: undefined, soonest: false });
      planned.delete(name);
    }
    wake();
  };

  /** Events that came back, or came late, after their agent had gone are given up too. Never throws. */
  const giveUpGone = (): Promise<void> => {
    givingUp = givingUp.then(async () => {
      for (const name of gone) {
        await giveUp(name, reasonOf(name), () => agents.find(name) === undefined);
      }
    });
    givingUp = givingUp.catch((error: unknown) => {
      events.storeFailed({ operation: "failQueuedEvents", error });
      waitFor(RETRY_MS);
    });
    return givingUp;
  };

  const giveUp = async (agent: string, reason: string, mayGoOn = () => true): Promise<void> => {
    let count = 0;
    for (let some = GIVEN_UP; some === GIVEN_UP && store.agentCounts(agent).waitingEvents > 0; count += some) {
      some = await inSlice(() => {
        const end = { now: clock.now(), streamKeep: GATEWAY_KEPT_ENTRIES, limit: GIVEN_UP };
        return mayGoOn() ? store.failQueuedEvents(agent, reason, end) : 0;
      });
    }
    if (count > 0) events.eventsGivenUp({ agent, count, reason });
  };

  const stop = (): void => {
    if (state === "running") state = "stopping";
    stopTimer();
    stopRetry();
    for (const { beat } of held.values()) beat.stop();
  };

  return {
    expect,

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
      await plan();
      await giveUpGone();
    },

    /** Why the events of an agent cannot be handed over now; undefined when they can. */
    delayedBy: (agent: string): string | undefined => held.get(agent)?.beat.delayedBy,

    /** Gives up what waits for an agent and no turn works on. */
    giveUp: (agent: string, reason: string): Promise<void> => giveUp(agent, reason),

    /** Plans no beat of an agent that is gone, and gives up what waits for it; where the store is our own, what comes back to it too. */
    async leave(agent: string): Promise<void> {
      if (!store.shared) gone.add(agent);
      await store.planBeat(agent, { now: clock.now(), delayMs: undefined, soonest: false });
      await giveUp(agent, reasonOf(agent), () => agents.find(agent) === undefined);
    },

    /** Begins no beat and no turn any more; turns that run go on. */
    stop,

    /** Gives back what is held: beats whose turns have not ended are due at once, wherever they are claimed. */
    async close(): Promise<void> {
      stop();
      state = "closed";
      for (const { beat } of held.values()) beat.leave();
      const ends = [...held.values()].map(({ ended }) => ended);
      const inTime = new AbortController();
      if (ends.length > 0) {
        void Promise.all(ends).finally(() => inTime.abort());
        await rest(clock, LAST_ENDS_MS, inTime.signal);
      }
      stopTick?.();
    },
  };
};

const reasonOf = (agent: string): string => `the agent ${agent} left the configuration`;

export type Heartbeat = ReturnType<typeof createHeartbeat>;

/** Up to a tenth more, so that agents and nodes that began together do not beat together. */
const jittered = (every: number | undefined): number | undefined =>
  every === undefined ? undefined : Math.round(every * (1 + JITTER * Math.random()));
