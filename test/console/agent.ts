import type { Now } from "#console/lib/live-now.ts";

type Agent = Now["agents"][number];

/** An agent without work. */
export function agent(more: Partial<Agent> = {}): Agent {
  return {
    agentName: "main",
    description: "",
    backend: "echo",
    model: null,
    state: "idle",
    paused: false,
    pausedAt: null,
    running: 0,
    queued: 0,
    waitingEvents: 0,
    skills: [],
    heartbeat: { every: "30m", nextAt: null },
    lastTurnAt: null,
    ...more,
  };
}
