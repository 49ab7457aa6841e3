import { hasSkill, type Skills } from "#core/skills/skills.ts";
import type { AgentList, Agent as AgentView } from "#generated/rpc-types.ts";
import type { AgentCounts, Store } from "#store/store.ts";
import type { Agent, Agents } from "./agents.ts";

/** What of a view changes with the configuration and the skills alone, and the last and next times as text. */
type Card = {
  agent: Agent;
  ids: readonly string[];
  skills: string[];
  heartbeat: AgentView["heartbeat"];
  nextBeatAt: number | undefined;
  lastEndedAt: number | undefined;
  lastTurnAt: string | null;
};

/** The agents as callers see them. Asked for more than anything else, so that a view costs one object. */
export const createAgentViews = ({ agents, skills, store }: { agents: Agents; skills: Skills; store: Store }) => {
  const cards = new Map<string, Card>();

  const cardOf = (agent: Agent): Card => {
    const known = cards.get(agent.name);
    const ids = skills.ids();
    if (known?.agent === agent && known.ids === ids) return known;
    const card: Card = {
      agent,
      ids,
      skills: ids.filter((id) => hasSkill(agent, id)),
      heartbeat: { every: spanOf(agent.heartbeatMs), nextAt: null },
      nextBeatAt: undefined,
      lastEndedAt: undefined,
      lastTurnAt: null,
    };
    cards.set(agent.name, card);
    return card;
  };

  const viewOf = (agent: Agent): AgentView => {
    const card = cardOf(agent);
    const counts = store.agentCounts(agent.name);
    if (counts.lastEndedAt !== card.lastEndedAt) {
      card.lastEndedAt = counts.lastEndedAt;
      card.lastTurnAt = textOf(counts.lastEndedAt);
    }
    const nextBeatAt = counts.pausedAt === undefined ? counts.nextBeatAt : undefined;
    if (nextBeatAt !== card.nextBeatAt) {
      card.nextBeatAt = nextBeatAt;
      card.heartbeat = { every: card.heartbeat.every, nextAt: textOf(nextBeatAt) };
    }
    return {
      agentName: agent.name,
      description: agent.description,
      backend: agent.backend.kind,
      model: agent.model ?? null,
      state: stateOf(counts),
      paused: counts.pausedAt !== undefined,
      pausedAt: textOf(counts.pausedAt),
      running: counts.running,
      queued: counts.queued,
      waitingEvents: counts.waitingEvents,
      skills: card.skills,
      heartbeat: card.heartbeat,
      lastTurnAt: card.lastTurnAt,
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
