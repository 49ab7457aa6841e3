import { GATEWAY_STORED_ENTRIES } from "#core/gateway-stream.ts";
import type { SystemEvents } from "#core/heartbeat/system-events.ts";
import type { CoreParts } from "#core/parts.ts";

/** The pause between two reports of its agents by a gateway that shares its store, and between two looks after a change. */
const EVERY_MS = 2_000;
/** For this time after a change, only gateways that are there now count. At its end, gateways that died are known to be gone. */
const SETTLING_MS = 30_000;
const NOW_MS = 10_000;
/** Later on an agent has left when no gateway has had it for so long. */
const AWAY_MS = 3_600_000;
const POLL_MS = 60_000;

type RemovedParts = CoreParts & { systemEvents: SystemEvents };

/**
 * Gives up the work of an agent that left the configuration: also if it left while no gateway ran, and also work that comes back
 * later, as events of a turn that failed. If several gateways share a store, an agent has left when none of them has it any more.
 */
export function createRemovedAgents({ store, agents, systemEvents, clock, events }: RemovedParts) {
  const { shared } = store;
  let settledAt = clock.monotonic() + SETTLING_MS;
  let pollAt = 0;
  let isClosed = false;
  let stopTimer = () => {};
  let ticking: Promise<void> | undefined;

  const giveUp = async (name: string): Promise<void> => {
    if (agents.find(name)) return;
    const error = { name: "agent-removed", detail: `the agent ${name} was removed from the configuration` } as const;
    const count = await store.failQueuedTurns(name, error, clock.now());
    if (count > 0) events.turnsGivenUp({ agent: name, count });
    // Now that no queued turn has events of it.
    await store.dropBeat(name, { now: clock.now(), streamKeep: GATEWAY_STORED_ENTRIES });
    await systemEvents.giveUp(name, error.detail, () => agents.find(name) === undefined);
  };

  const say = (names = agents.list().map(({ name }) => name)) => shared?.haveAgents(names);

  /** Never throws: a failed write to the store is tried again. */
  const tick = async (): Promise<void> => {
    const now = clock.monotonic();
    const isSettling = now < settledAt;
    try {
      await say();
      if (isSettling || now >= pollAt) {
        const unknown = (await store.openAgents()).filter((name) => !agents.find(name));
        const missing =
          shared && unknown.length > 0 ? shared.missingAgents(unknown, isSettling ? NOW_MS : AWAY_MS) : unknown;
        for (const name of await missing) await giveUp(name);
        pollAt = now + POLL_MS;
      }
    } catch (error) {
      if (!isClosed) events.storeFailed({ operation: "goneAgents", error });
      pollAt = 0;
    }
    stopTimer();
    if (isClosed) return;
    stopTimer = clock.after(shared || isSettling || pollAt === 0 ? EVERY_MS : POLL_MS, () => {
      ticking = tick();
    });
  };

  return {
    /** Resolves when what waits for agents that had left before is given up. */
    begin: tick,

    /** Lets the other gateways know of agents that are about to come, before something can be sent to them here. */
    async expect(names: readonly string[]): Promise<void> {
      const all = new Set([...agents.list().map(({ name }) => name), ...names]);
      await say([...all])?.catch((error: unknown) => events.storeFailed({ operation: "haveAgents", error }));
    },

    /** Some have left the configuration; resolves when what waits for them is given up, unless the store could not take that. */
    left(): Promise<void> {
      settledAt = clock.monotonic() + SETTLING_MS;
      return tick();
    },

    async close(): Promise<void> {
      isClosed = true;
      stopTimer();
      await ticking;
    },
  };
}
