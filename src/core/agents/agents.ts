import type { Backend } from "#backends/backend.ts";
import { GATEWAY_STORED_ENTRIES } from "#core/gateway-stream.ts";
import { type Skills, skillsOf } from "#core/skills/skills.ts";
import type { Agent as AgentView } from "#generated/rpc-types.ts";
import type { Clock } from "#kit/clock.ts";
import { GatewayError } from "#kit/errors.ts";
import { quoted, suggest } from "#kit/fault-words.ts";
import { reaches } from "#kit/reach.ts";
import type { Events } from "#observe/events.ts";
import type { AgentCounts, Store } from "#store/store.ts";
import type { ToolSource } from "#tools/tool.ts";

/** An agent as the configuration describes it. */
export type AgentSettings = {
  name: string;
  description: string;
  instructions: string | undefined;
  model: string | undefined;
  skills: readonly string[];
  concurrency: number;
  deadlineMs: number;
  /** The pause between two heartbeats; undefined where they are off. */
  heartbeatMs: number | undefined;
  /** The time limits of its backend: until the first data of a reply, and between two pieces of data. */
  firstByteMs: number;
  silenceMs: number;
};

export type Agent = AgentSettings & {
  readonly backend: Backend;
  /** Its tool servers; undefined if it has none. */
  readonly toolSource: ToolSource | undefined;
};

/** The agents by name, in the configuration's order. */
export type AgentTable = { agents: ReadonlyMap<string, Agent>; defaultAgent: string | undefined };

/** The agents of the current settings. Running turns keep the agent that they started with. */
export function createAgents(settings: () => AgentTable) {
  const find = (name: string): Agent | undefined => settings().agents.get(name);
  return {
    find,
    defaultName: () => settings().defaultAgent,
    /** The named agent, or the default one. An error names only the agents in `shown`. */
    get(name: string | undefined, shown?: readonly string[]): Agent {
      const { agents, defaultAgent } = settings();
      const agent = agents.get(name ?? defaultAgent ?? "");
      if (agent) return agent;
      if (name === undefined) throw new GatewayError("agent-not-found", "There is no default agent.");
      const meant = suggest(
        name,
        [...agents.keys()].filter((known) => reaches({ agents: shown }, known)),
      );
      throw new GatewayError("agent-not-found", `No agent is named ${quoted(name)}.${meant}`);
    },
    list: (): readonly Agent[] => [...settings().agents.values()],
  };
}

export type Agents = ReturnType<typeof createAgents>;

/** The model that usage is counted under: the turn's, the agent's, or otherwise the kind of the backend. */
export function countedModel(agent: Agent, model: string | undefined): string {
  return model ?? agent.model ?? agent.backend.kind;
}

/** The model's label in metrics: a model that the agent lists, or the kind of the backend, because other names are unbounded. */
export function labelOfModel({ backend }: Pick<Agent, "backend">, model: string): string {
  return backend.models?.includes(model) ? model : backend.kind;
}

/** The remaining time in which an agent's backend gets no requests, in milliseconds; otherwise 0. */
export function restMsOf({ backend, model: own }: Agent, model = own): number {
  return backend.restMs?.(model) ?? 0;
}

/** Refuses a turn whose caller waits, while the agent's backend gets no requests. */
export function requireAwake(agent: Agent, model: string | undefined): void {
  const retryAfterMs = restMsOf(agent, model);
  if (retryAfterMs === 0) return;
  const words = `The backend of the agent ${agent.name} has failed several times in a row and gets no requests for a while.`;
  throw new GatewayError("agent-unavailable", words, { retryAfterMs });
}

/** Refuses a model that the agent does not have, with an error that lists its models. */
export function checkModel(agent: Agent, model: string | undefined): void {
  const known = agent.backend.models;
  if (model === undefined || known === undefined || known.includes(model)) return;
  throw new GatewayError("unknown-model", modelsOf(agent.name, known));
}

/** The sentence of an error that lists the models of an agent. */
export function modelsOf(name: string, models: readonly string[]): string {
  if (models.length === 0) return `The agent ${name} has no models to choose from.`;
  return `The models of the agent ${name} are: ${models.join(", ")}.`;
}

type AgentParts = { store: Store; agents: Agents; skills: Skills; clock: Clock; events: Events };

/** Pauses or resumes an agent; returns the start of the pause. Waiting work stays in the store. Throws `agent-not-found`. */
export async function setPaused(
  { store, agents, clock, events }: AgentParts,
  name: string,
  paused: boolean,
  caller: string,
): Promise<number | undefined> {
  const { name: agent } = agents.get(name);
  const { pausedAt, isChanged } = await store.setPaused(agent, {
    paused,
    now: clock.now(),
    streamKeep: GATEWAY_STORED_ENTRIES,
  });
  if (isChanged && paused) events.agentPaused({ agent, caller });
  if (isChanged && !paused) events.agentResumed({ agent, caller });
  return pausedAt;
}

/** An agent as callers see it. Throws `agent-not-found`. */
export function agentView({ store, skills, agents }: AgentParts, name: string): AgentView {
  const agent = agents.get(name);
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
}

function stateOf({ running, failing }: AgentCounts): AgentView["state"] {
  if (running > 0) return "busy";
  return failing ? "failing" : "idle";
}

export function textOf(time: number | undefined): string | null {
  return time === undefined ? null : new Date(time).toISOString();
}

const SPANS = [
  [86_400_000, "d"],
  [3_600_000, "h"],
  [60_000, "m"],
  [1_000, "s"],
] as const;

/** A duration as in the configuration, in the largest unit that divides it. */
export function spanOf(ms: number | undefined): string {
  if (ms === undefined) return "off";
  const [size, unit] = SPANS.find(([size]) => ms % size === 0) ?? [1, "ms"];
  return `${ms / size}${unit}`;
}
