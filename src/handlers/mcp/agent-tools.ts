import type { Agent } from "#core/agents/agents.ts";
import type { Core } from "#core/core.ts";
import type { McpSettings, RestCaller } from "#core/mcp-tools.ts";
import { ended } from "#kit/fault-words.ts";
import { TURN_OUTPUT } from "./answers.ts";
import { askNames } from "./names.ts";
import { checkedBy, type TurnTool } from "./tool.ts";
import { findOffered, LATER, offeredTo, SESSION, startFor, UNTRUSTED } from "./turn-tools.ts";

const INPUT = {
  type: "object",
  additionalProperties: false,
  required: ["message"],
  properties: {
    message: { type: "string", minLength: 1, description: "The text to send to the agent." },
    session: SESSION,
  },
};
type Message = { message: string; session?: string };

/** A tool for each agent that the caller may use: it sends a message. */
export function agentTools(core: Core, settings: McpSettings, caller: RestCaller): TurnTool[] {
  const { toolOf } = askNames(core.settings().agents);
  return offeredTo(core, settings, caller).flatMap((agent) => {
    const name = toolOf.get(agent.name);
    return name === undefined ? [] : [askTool(core, name, agent)];
  });
}

/** The tool with this name in that list. */
export function findAgentTool(
  core: Core,
  settings: McpSettings,
  caller: RestCaller,
  name: string,
): TurnTool | undefined {
  const agentName = askNames(core.settings().agents).agentOf.get(name);
  const agent = agentName === undefined ? undefined : findOffered(core, settings, caller, agentName);
  return agent && askTool(core, name, agent);
}

function askTool(core: Core, name: string, { name: agent, description }: Agent): TurnTool {
  return {
    name,
    title: core.hide(`Ask ${agent}`),
    description: `${core.hide(ended(description.trim() || `Sends a message to the agent ${agent}`))} ${UNTRUSTED} ${LATER}`,
    inputSchema: INPUT,
    outputSchema: TURN_OUTPUT,
    hint: "write",
    isTrusted: false,
    startsTurn: true,
    async start(args, call) {
      const { message: text, session } = await checkedBy<Message>(INPUT, args);
      return startFor(core, { agent, session, text }, call);
    },
  };
}
