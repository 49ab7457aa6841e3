import { type Skills, skillsOf } from "#core/skills/skills.ts";
import type { AgentList, Agent as AgentView } from "#generated/rpc-types.ts";
import type { AgentCounts, Store } from "#store/store.ts";
import type { Agent, Agents } from "./agents.ts";

/** The agents as callers see them. */
export const createAgentViews = ({ agents, skills, store }: { agents: Agents; skills: Skills; store: Store }) => {
  const viewOf = (agent: Agent): AgentView => {
    const counts = store.agentCounts(agent.name);
    const { pausedAt } = counts;
    return {
      agentName: agent.name,
      description: agent.description,
      backend: agent.backend.kind,
      model: agent.model ?? null,
      state: stateOf(counts),
      paused: pausedAt !== undefined,
      pausedAt: textOf(pausedAt),
      running: counts.running,
      queued: counts.queued,
      waitingEvents: counts.waitingEvents,
      skills: skillsOf(skills, agent),
      heartbeat: {
        every: spanOf(agent.heartbeatMs),
        nextAt: pausedAt === undefined ? textOf(counts.nextBeatAt) : null,
      },
      lastTurnAt: textOf(counts.lastEndedAt),
    };
  };
  return {
    /** Throws `agent-not-found`. */
    agentView: (name: string): AgentView => viewOf(agents.get(name)),
    /** In the order of the configuration. */
    agentList: (): AgentList => ({ agents: agents.list().map(viewOf) }),
  };
};

const stateOf = ({ running, failing }: AgentCounts): AgentView["state"] => {
  if (running > 0) return "busy";
  return failing ? "failing" : "idle";
};

const textOf = (time: number | undefined): string | null => (time === undefined ? null : new Date(time).toISOString());

const SPANS = [
  [86_400_000, "d"],
  [3_600_000, "h"],
  [60_000, "m"],
  [1_000, "s"],
] as const;

/** A span as the configuration writes one, in the largest unit that has no rest. */
const spanOf = (ms: number | undefined): string => {
  if (ms === undefined) return "off";
  const [size, unit] = SPANS.find(([size]) => ms % size === 0) ?? [1, "ms"];
  return `${ms / size}${unit}`;
};
