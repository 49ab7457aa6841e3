import { GATEWAY_STORED_ENTRIES } from "#core/gateway-stream.ts";
import type { SystemEvents } from "#core/heartbeat/system-events.ts";
import type { CoreParts } from "#core/parts.ts";

/** The interval at which a gateway with a shared store reports its agents, and of the checks after a change. */
const EVERY_MS = 2_000;
/** For this time after a change, only currently running gateways count. After it, the store knows which gateways have died. */
const SETTLING_MS = 30_000;
const NOW_MS = 10_000;
/** After that, an agent is removed if no gateway has had it for this time. */
const AWAY_MS = 3_600_000;
const POLL_MS = 60_000;

type RemovedParts = CoreParts & { systemEvents: SystemEvents };

/**
 * Fails the work of agents that were removed from the configuration, even while no gateway ran, and work that is returned
 * later, such as events of a failed turn. If several gateways share a store, an agent is removed when none of them has it.
 */
export function createRemovedAgents({ store, agents, systemEvents, clock, events }: RemovedParts) {
  const { shared } = store;
  let settledAt = clock.monotonic() + SETTLING_MS;
  let pollAt = 0;
  let isClosed = false;
  let stopTimer = () => {};
  let ticking: Promise<void> | undefined;

  const failWork = async (name: string): Promise<void> => {
    if (agents.find(name)) return;
    const error = { name: "agent-removed", detail: `the agent ${name} was removed from the configuration` } as const;
    const count = await store.failQueuedTurns(name, error, clock.now());
    if (count > 0) events.turnsGivenUp({ agent: name, count });
    // Runs after the queued turns have failed, because they may return events of the agent.
    await store.removeBeat(name, { now: clock.now(), streamKeep: GATEWAY_STORED_ENTRIES });
    await systemEvents.giveUp(name, error.detail, () => agents.find(name) === undefined);
  };

  const report = (names = agents.list().map(({ name }) => name)) => shared?.haveAgents(names);

  /** Never throws: a failed write to the store is tried again. */
  const tick = async (): Promise<void> => {
    const now = clock.monotonic();
    const isSettling = now < settledAt;
    try {
      await report();
      if (isSettling || now >= pollAt) {
        const unknown = (await store.openAgents()).filter((name) => !agents.find(name));
        const missing =
          shared && unknown.length > 0 ? shared.missingAgents(unknown, isSettling ? NOW_MS : AWAY_MS) : unknown;
        for (const name of await missing) await failWork(name);
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
    /** Resolves when the waiting work of removed agents has failed. */
    begin: tick,

    /** Reports new agents to the other gateways, before this gateway accepts work for them. */
    async expect(names: readonly string[]): Promise<void> {
      const all = new Set([...agents.list().map(({ name }) => name), ...names]);
      await report([...all])?.catch((error: unknown) => events.storeFailed({ operation: "haveAgents", error }));
    },

    /** Called after agents were removed. Resolves when their waiting work has failed, or the store did not answer. */
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
