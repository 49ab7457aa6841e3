import type { Heartbeat } from "#core/heartbeat/heartbeat.ts";
import type { Clock } from "#kit/clock.ts";
import type { Events } from "#observe/events.ts";
import type { Store } from "#store/store.ts";
import type { Agents } from "./agents.ts";

/** So often a gateway that shares its store says which agents it has. */
const EVERY_MS = 2_000;
/** Who has taken a configuration goes by who is there now, for so long that gateways that died are known to be gone. */
const SETTLING_MS = 30_000;
const NOW_MS = 10_000;
/** Later on an agent has left when no gateway has had it for so long. */
const AWAY_MS = 3_600_000;
const LOOK_MS = 60_000;

type RemovedParts = {
  store: Store;
  agents: Agents;
  heartbeat: Pick<Heartbeat, "leave">;
  clock: Clock;
  events: Events;
};

/**
 * What waits for an agent that left the configuration is given up, also where it left while no gateway ran. Where several share a store,
 * an agent has left when none of them has it any more.
 */
export const createRemovedAgents = ({ store, agents, heartbeat, clock, events }: RemovedParts) => {
  const { shared } = store;
  let settledAt = clock.monotonic() + SETTLING_MS;
  let lookAt = 0;
  let isClosed = false;
  let stopTimer = () => {};
  let ticking: Promise<void> | undefined;

  const giveUp = async (names: readonly string[]): Promise<void> => {
    for (const name of names) {
      if (agents.find(name)) continue;
      const error = { name: "agent-removed", detail: `the agent ${name} left the configuration` } as const;
      const count = await store.failQueuedTurns(name, error, clock.now());
      if (count > 0) events.turnsGivenUp({ agent: name, count });
      // Now that no queued turn has events of it.
      await heartbeat.leave(name);
    }
  };

  const look = async (): Promise<void> => {
    const unknown = (await store.openAgents()).filter((name) => !agents.find(name));
    if (unknown.length === 0) return;
    const isSettling = clock.monotonic() < settledAt;
    await giveUp(shared ? await shared.goneAgents(unknown, isSettling ? NOW_MS : AWAY_MS) : unknown);
  };

  const say = (names = agents.list().map(({ name }) => name)) => shared?.haveAgents(names);

  const tick = async (): Promise<void> => {
    try {
      await say();
      const now = clock.monotonic();
      if (now < settledAt || now >= lookAt) {
        await look();
        lookAt = now + LOOK_MS;
      }
      if (shared) plan();
    } catch (error) {
      retry(error);
    }
  };
  const retry = (error: unknown): void => {
    if (isClosed) return;
    events.storeFailed({ operation: "goneAgents", error });
    lookAt = 0;
    plan();
  };
  const plan = (): void => {
    stopTimer();
    if (isClosed) return;
    stopTimer = clock.after(EVERY_MS, () => {
      ticking = tick();
    });
  };

  return {
    /** Resolves when what waits for agents that had left before is given up. Never throws, as below. */
    async begin(): Promise<void> {
      if (store.durable) await tick();
    },

    /** Lets the other gateways know of agents that are about to come, before something can be sent to them here. */
    async expect(names: readonly string[]): Promise<void> {
      try {
        await say([...new Set([...agents.list().map(({ name }) => name), ...names])]);
      } catch (error) {
        events.storeFailed({ operation: "haveAgents", error });
      }
    },

    /** These have left the configuration. Never throws: what the store could not take is tried again. */
    async left(names: readonly string[]): Promise<void> {
      settledAt = clock.monotonic() + SETTLING_MS;
      try {
        if (!shared) return await giveUp(names);
        await say();
        await look();
      } catch (error) {
        retry(error);
      }
    },

    async close(): Promise<void> {
      isClosed = true;
      stopTimer();
      await ticking;
    },
  };
};
