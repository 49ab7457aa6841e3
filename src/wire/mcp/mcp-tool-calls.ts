import type { CallToolResult, ServerContext, Tool } from "@modelcontextprotocol/server";
import type { McpAnswer, McpTool } from "#core/mcp-tools.ts";
import { type ErrorName, GatewayError } from "#kit/errors.ts";
import { type McpRequest, ToolCall, type ToolParts } from "./mcp-request.ts";
import { guarded, resultOf } from "./mcp-results.ts";
import { declaresTasks, taskResultOf } from "./mcp-tasks.ts";

/** A tool as the protocol lists it. */
export function toolOf({ name, title, description, inputSchema, outputSchema, hint, startsTurn }: McpTool): Tool {
  return {
    name,
    title,
    description,
    inputSchema: inputSchema as Tool["inputSchema"],
    ...(outputSchema && { outputSchema: outputSchema as NonNullable<Tool["outputSchema"]> }),
    annotations: {
      title,
      readOnlyHint: hint === "read",
      destructiveHint: hint === "destructive",
      openWorldHint: startsTurn,
    },
  };
}

type Params = { name: string; arguments?: unknown };

/** Calls a tool. A client that takes tasks gets one for a turn that does not end soon. A refusal is an error of the protocol. */
export async function callTool(
  parts: ToolParts,
  request: McpRequest,
  params: Params,
  ctx: ServerContext,
): Promise<CallToolResult> {
  return await guarded(request, () => run(parts, request, params, ctx));
}

async function run(
  parts: ToolParts,
  request: McpRequest,
  { name, arguments: args = {} }: Params,
  ctx: ServerContext,
): Promise<CallToolResult> {
  const { tools, waitMs, taskAfterMs } = parts;
  const { caller } = request;
  const { line } = request.call;
  const tool = tools.find(name, caller);
  // A tool that starts a turn is named by the configuration or a folder, so its name is not a label of the metrics.
  if (tool?.startsTurn === false) line.reached(`mcp.${name}`);
  const sent = { name, args, meta: ctx.mcpReq._meta, signal: ctx.mcpReq.signal };
  if (tool?.startsTurn === true && declaresTasks(ctx)) {
    const started = await tools.start(name, args, new ToolCall(request, { ...sent, waitMs: taskAfterMs }));
    if (started?.turn && started.answer === undefined) {
      line.started(started.turn.turnId);
      return taskResultOf(started, parts);
    }
    return reportAnswer(request, name, started?.answer, tool.isTrusted);
  }
  const answer = await tools.call(name, args, new ToolCall(request, { ...sent, waitMs, progress: progressOf(ctx) }));
  return reportAnswer(request, name, answer, tool?.isTrusted === true);
}

/** The result of a call. Its error and its turn are written to the access line. */
function reportAnswer(
  request: McpRequest,
  name: string,
  answer: McpAnswer | undefined,
  isTrusted: boolean,
): CallToolResult {
  const { line } = request.call;
  if (answer === undefined) throw unknownTool(name);
  if (answer.error !== undefined) line.failed(new GatewayError(answer.error as ErrorName, answer.text));
  line.started((answer.structured as { turn_id?: string } | undefined)?.turn_id);
  return resultOf(answer, isTrusted);
}

function unknownTool(name: string): GatewayError {
  return new GatewayError(
    "invalid-params",
    `There is no tool \`${name.slice(0, NAME_LIMIT)}\`. tools/list has the tools of your key.`,
  );
}
const NAME_LIMIT = 100;

const PROGRESS_EVERY_MS = 1_000;

/** Notifies a client that asks for progress of the number of steps, at most once a second. */
function progressOf({ mcpReq }: ServerContext): ((steps: number) => void) | undefined {
  const token = mcpReq._meta?.progressToken;
  if (token === undefined) return undefined;
  let last = -Infinity;
  return (steps) => {
    const now = performance.now();
    if (now - last < PROGRESS_EVERY_MS) return;
    last = now;
    const params = { progressToken: token, progress: steps, message: `${steps} ${steps === 1 ? "step" : "steps"}` };
    mcpReq.notify({ method: "notifications/progress", params }).catch(() => {});
  };
}
