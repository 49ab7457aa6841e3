import type { Agents } from "#core/agents/agents.ts";
import { GATEWAY_KEPT_ENTRIES } from "#core/gateway-stream.ts";
import type { InBackground } from "#kit/background.ts";
import type { Clock } from "#kit/clock.ts";
import type { Events } from "#observe/events.ts";
import type { Store } from "#store/store.ts";

const JITTER = 0.1;
const RETRY_MS = 1_000;
/** Events of a removed agent that are given up at a time. */
const GIVEN_UP = 100;
/** Stands for the pause of a plan that is to be made again. */
const OUTDATED = -1;

type PlanParts = {
  store: Store;
  agents: Agents;
  clock: Clock;
  events: Events;
  inBackground: InBackground;
  /** Something was planned, or has to be looked at again in so long. */
  wakeIn: (ms: number) => void;
};

export type BeatPlans = ReturnType<typeof createBeatPlans>;

/** Keeps the store's plans of beats as the configuration has them, and gives up the events of agents that left it. */
export const createBeatPlans = (parts: PlanParts) => {
  const { store, agents, clock, events, inBackground, wakeIn } = parts;
  /** The pause that each agent's next beat was planned with. */
  const planned = new Map<string, { every: number | undefined }>();
  /** Agents that left the configuration while this process ran. */
  const gone = new Set<string>();
  let isStopped = false;
  let stopRetry = () => {};
  let planning = Promise.resolve();
  let givingUp = Promise.resolve();

  const planAll = async (): Promise<void> => {
    for (const { name, heartbeatMs: every } of agents.list()) {
      const before = planned.get(name);
      if (before && before.every === every) continue;
      // A store that outlives its process may know of a beat that was missed meanwhile.
      const soonest = every !== undefined && !before;
      await store.planBeat(name, { now: clock.now(), delayMs: jittered(every), soonest });
      planned.set(name, { every });
      gone.delete(name);
    }
    for (const name of planned.keys()) {
      if (agents.find(name)) continue;
      // Of a shared store another gateway may have it still.
      if (!store.shared) {
        gone.add(name);
        await store.planBeat(name, { now: clock.now(), delayMs: undefined, soonest: false });
      }
      planned.delete(name);
    }
    wakeIn(0);
  };

  /** Plans what the configuration says and was not planned yet. Never throws: what the store could not take is planned again. */
  const plan = (): Promise<void> => {
    planning = planning.then(planAll).catch((error: unknown) => {
      events.storeFailed({ operation: "planBeat", error });
      stopRetry();
      if (!isStopped) stopRetry = clock.after(RETRY_MS, () => void plan());
    });
    return planning;
  };

  const giveUp = async (agent: string, reason: string, mayGoOn = () => true): Promise<void> => {
    let count = 0;
    for (let some = GIVEN_UP; some === GIVEN_UP && store.agentCounts(agent).waitingEvents > 0; count += some) {
      some = await inBackground(() => {
        const end = { now: clock.now(), streamKeep: GATEWAY_KEPT_ENTRIES, limit: GIVEN_UP };
        return mayGoOn() ? store.failQueuedEvents(agent, reason, end) : 0;
      });
    }
    if (count > 0) events.eventsGivenUp({ agent, count, reason });
  };

  const giveUpRemoved = (agent: string): Promise<void> =>
    giveUp(agent, `the agent ${agent} left the configuration`, () => agents.find(agent) === undefined);

  return {
    plan,

    /** Another configuration came while a beat's end was being kept: what that planned may be lost. */
    planAgain(agent: string): void {
      planned.set(agent, { every: OUTDATED });
      void plan();
    },

    /** Events of agents that left may come back, or come late. */
    hasGone: (): boolean => gone.size > 0,

    /** Gives up what has come back, or came late, after its agent had gone. Never throws. */
    giveUpGone(): Promise<void> {
      givingUp = givingUp
        .then(async () => {
          for (const name of gone) await giveUpRemoved(name);
        })
        .catch((error: unknown) => {
          events.storeFailed({ operation: "failQueuedEvents", error });
          wakeIn(RETRY_MS);
        });
      return givingUp;
    },

    /** Gives up what waits for an agent and no turn works on. */
    giveUp: (agent: string, reason: string): Promise<void> => giveUp(agent, reason),

    /** Plans no beat of an agent that is gone, and gives up what waits for it; where the store is our own, what comes back to it too. */
    async leave(agent: string): Promise<void> {
      if (!store.shared) gone.add(agent);
      await store.planBeat(agent, { now: clock.now(), delayMs: undefined, soonest: false });
      await giveUpRemoved(agent);
    },

    stop(): void {
      isStopped = true;
      stopRetry();
    },
  };
};

/** Up to a tenth more, so that agents and nodes that began together do not beat together. */
export const jittered = (every: number | undefined): number | undefined =>
  every === undefined ? undefined : Math.round(every * (1 + JITTER * Math.random()));
