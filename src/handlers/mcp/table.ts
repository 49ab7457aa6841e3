import type { Core } from "#core/core.ts";
import type { McpAnswer, McpCall, McpSettings, McpTools, RestCaller } from "#core/mcp-tools.ts";
import { turnFor } from "#core/reach.ts";
import { GatewayError } from "#kit/errors.ts";
import { isLoop, loopWords } from "#kit/hops.ts";
import { agentTools, findAgentTool } from "./agent-tools.ts";
import { answerOfError, answerOfTurn, taskOf } from "./answers.ts";
import { type Bodies, findOperatorTool, operatorTools, RESERVED } from "./operator-tools.ts";
import { findSkillTool, skillFolders, skillTools } from "./skill-tools.ts";
import { argsOf, type Tool } from "./tool.ts";
import { turnGet } from "./turn-get.ts";
import { waitFor } from "./turn-tools.ts";

type McpParts = Bodies & { settings: () => McpSettings };

/** The tools of the MCP door: agents, skills, and the operations of the contract with `x-mcp`. */
export function createMcpTools(core: Core, parts: McpParts): McpTools {
  const { hide, turns } = core;
  const readTurn = turnGet(core, parts);
  const skillParts = () => ({ core, settings: parts.settings(), reserved: RESERVED, hideInJson: parts.hideInJson });
  const find = (name: string, caller: RestCaller): Tool | undefined => {
    const settings = parts.settings();
    if (name === readTurn.name) return readTurn;
    return (
      findOperatorTool(parts, settings, caller, name) ??
      findAgentTool(core, settings, caller, name) ??
      findSkillTool(skillParts(), caller, name)
    );
  };
  return {
    async list(caller) {
      const settings = parts.settings();
      return [
        ...agentTools(core, settings, caller),
        ...skillTools(skillParts(), caller),
        readTurn,
        ...operatorTools(parts, settings, caller),
      ];
    },
    find,
    async call(name, args, call) {
      const tool = find(name, call.caller);
      return tool && (await answerErrors(hide, () => callTool(core, tool, args, call)));
    },
    async start(name, args, call) {
      const tool = find(name, call.caller);
      if (!tool?.startsTurn) return undefined;
      const started = await answerErrors(hide, async () => {
        refuseLoop(tool, call);
        const turn = await tool.start(argsOf(args), call);
        return taskOf(await waitFor(core, turn, call.waitMs, call), hide);
      });
      return "text" in started ? { answer: started } : started;
    },
    task: async (turnId, caller) => taskOf(await turnFor(turns, caller, turnId), hide),
    async cancel(turnId, caller) {
      await turnFor(turns, caller, turnId);
      const turn = await turns.cancel(turnId).catch(unlessEnded);
      return taskOf(turn ?? (await turnFor(turns, caller, turnId)), hide);
    },
    skills: skillFolders(core, parts.settings),
  };
}

async function callTool(core: Core, tool: Tool, given: unknown, call: McpCall): Promise<McpAnswer> {
  refuseLoop(tool, call);
  const args = argsOf(given);
  if (!tool.startsTurn) return await tool.answer(args, call);
  const turn = await tool.start(args, call);
  return answerOfTurn(await waitFor(core, turn, call.waitMs, call), core.hide);
}

/** Refuses a tool that starts or changes something once its call has passed through too many agents. */
function refuseLoop({ hint }: Tool, { hops }: McpCall): void {
  if (hint !== "read" && isLoop(hops))
    throw new GatewayError("invalid-request", `The call is refused: ${loopWords()}.`);
}

/** The result of the work, or its error as an answer. */
async function answerErrors<T>(hide: Core["hide"], work: () => Promise<T>): Promise<T | McpAnswer> {
  try {
    return await work();
  } catch (error) {
    return answerOfError(error, hide);
  }
}

/** A turn that has already ended is not an error: there is nothing to cancel. */
function unlessEnded(error: unknown): undefined {
  if (GatewayError.from(error).name !== "turn-ended") throw error;
}
