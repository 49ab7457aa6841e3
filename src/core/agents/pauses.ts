import { GATEWAY_KEPT_ENTRIES } from "#core/gateway-stream.ts";
import type { Clock } from "#kit/clock.ts";
import type { Events } from "#observe/events.ts";
import type { Store } from "#store/store.ts";
import type { Agents } from "./agents.ts";

type PauseParts = { store: Store; agents: Agents; clock: Clock; events: Events };

/** Pauses an agent, or resumes it; answers since when it is paused then. The store keeps what waits. Throws `agent-not-found`. */
export const createPauses =
  ({ store, agents, clock, events }: PauseParts) =>
  async (name: string, paused: boolean, caller: string): Promise<number | undefined> => {
    const { name: agent } = agents.get(name);
    const order = { paused, now: clock.now(), streamKeep: GATEWAY_KEPT_ENTRIES };
    const { pausedAt, isChanged } = await store.setPaused(agent, order);
    if (isChanged && paused) events.agentPaused({ agent, caller });
    if (isChanged && !paused) events.agentResumed({ agent, caller });
    return pausedAt;
  };
