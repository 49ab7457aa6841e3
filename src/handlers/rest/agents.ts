import type { CallContext } from "#core/call.ts";
import type { Core } from "#core/core.ts";
import type { RestHandlers, RestReplies } from "#generated/rest-handlers.ts";
import { timeOrNull } from "./present.ts";

type AgentOperation = "agents.beat" | "agents.pause" | "agents.resume";

export const agents = ({ heartbeat, setPaused }: Core): Pick<RestHandlers<CallContext>, AgentOperation> => ({
  "agents.beat": async ({ path }) => {
    const { outcome, waitingEvents } = await heartbeat.beatNow(path.agent_name);
    return { agent_name: path.agent_name, outcome, waiting_events: waitingEvents };
  },
  "agents.pause": async ({ path }, { caller }) =>
    presentPause(path.agent_name, await setPaused(path.agent_name, true, caller.name)),
  "agents.resume": async ({ path }, { caller }) =>
    presentPause(path.agent_name, await setPaused(path.agent_name, false, caller.name)),
});

const presentPause = (agent_name: string, pausedAt: number | undefined): RestReplies["agents.pause"] => ({
  agent_name,
  paused: pausedAt !== undefined,
  paused_at: timeOrNull(pausedAt),
});
