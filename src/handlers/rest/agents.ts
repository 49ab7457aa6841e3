import { setPaused } from "#core/agents/agents.ts";
import type { CallContext } from "#core/call.ts";
import type { Core } from "#core/core.ts";
import type { RestHandlers, RestReplies } from "#generated/rest-handlers.ts";
import { snakeCased, timeOrNull } from "./present.ts";

type AgentOperation = "agents.beat" | "agents.pause" | "agents.resume";

export function agents(core: Core): Pick<RestHandlers<CallContext>, AgentOperation> {
  return {
    "agents.beat": async ({ path: { agent_name } }) => ({
      agent_name,
      ...snakeCased(await core.heartbeat.beatNow(agent_name)),
    }),
    "agents.pause": async ({ path }, { caller }) =>
      presentPause(path.agent_name, await setPaused(core, path.agent_name, true, caller.name)),
    "agents.resume": async ({ path }, { caller }) =>
      presentPause(path.agent_name, await setPaused(core, path.agent_name, false, caller.name)),
  };
}

function presentPause(agent_name: string, pausedAt: number | undefined): RestReplies["agents.pause"] {
  return {
    agent_name,
    paused: pausedAt !== undefined,
    paused_at: timeOrNull(pausedAt),
  };
}
