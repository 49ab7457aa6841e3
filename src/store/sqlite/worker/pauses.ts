import type { Pause } from "#store/store.ts";
import { appendGateway } from "./gateway-log.ts";
import { type State, tellGateway, tellOf } from "./state.ts";

type Pausing = { agent: string; paused: boolean; now: number; streamKeep: number };

export const pauseMethods = {
  setPaused: (state: State, { agent, paused, now, streamKeep }: Pausing): Pause => {
    const isChanged = state.agents.isPaused(agent) !== paused;
    if (isChanged) {
      state.agents.setPaused(agent, paused ? now : undefined);
      const name = paused ? "agent.paused" : "agent.resumed";
      appendGateway(state, { at: now, name, agentName: agent }, streamKeep);
      tellGateway(state);
    }
    if (isChanged && !paused) {
      tellOf(state, "work");
      tellOf(state, "beat");
    }
    return { pausedAt: state.agents.pausedAt(agent), isChanged };
  },
};
