import type { Store } from "#store/store.ts";
import { tellBeat } from "./beats.ts";
import { NO_SEQ } from "./rows.ts";
import { appendGateway, type State, tellGateway, tellWork } from "./state.ts";

export const pauseMethods = (state: State): Pick<Store, "setPaused"> => ({
  setPaused: async (agentName, { paused, now, streamKeep }) => {
    const counts = state.agents.of(agentName);
    const isChanged = (counts.pausedAt !== undefined) !== paused;
    if (isChanged) {
      counts.pausedAt = paused ? now : undefined;
      const name = paused ? "agent.paused" : "agent.resumed";
      appendGateway(state, { seq: NO_SEQ, at: now, name, agentName }, streamKeep);
      tellGateway(state);
    }
    if (isChanged && !paused) {
      tellWork(state);
      tellBeat(state);
    }
    return { pausedAt: counts.pausedAt, isChanged };
  },
});
