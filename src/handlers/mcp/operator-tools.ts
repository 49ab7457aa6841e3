import type { CallContext } from "#core/call.ts";
import type { McpAnswer, McpSettings, RestCaller } from "#core/mcp-tools.ts";
import { type McpSource, mcpTools } from "#generated/mcp-tools.ts";
import type { RestHandlers } from "#generated/rest-handlers.ts";
import type { RpcHandlers } from "#generated/rpc-handlers.ts";
import { returnsContent } from "#kit/content-operations.ts";
import { GatewayError } from "#kit/errors.ts";
import { type Args, checkedBy, type PlainTool } from "./tool.ts";

export type Bodies = {
  rest: RestHandlers<CallContext>;
  rpc: RpcHandlers<CallContext>;
  /** JSON without the secrets of the configuration. */
  hideInJson: (json: string) => string;
};

/** The tools of the contract that operate the gateway: all but `turn_get`. */
const OPERATOR = mcpTools.filter(({ name }) => name !== "turn_get");

/** The names that no skill may have as a tool. */
export const RESERVED: ReadonlySet<string> = new Set(mcpTools.map(({ name }) => name));

export function operatorTools(bodies: Bodies, { operator }: McpSettings, caller: RestCaller): PlainTool[] {
  return OPERATOR.filter((one) => isOn(one, operator) && hasScope(caller, one)).map((one) => toolOf(bodies, one));
}

/** The tool with this name in that list. Throws `forbidden` for one that this caller, or every caller, may not use. */
export function findOperatorTool(
  bodies: Bodies,
  { operator }: McpSettings,
  caller: RestCaller,
  name: string,
): PlainTool | undefined {
  const source = OPERATOR.find((one) => one.name === name);
  if (!source || operator === false) return undefined;
  if (!hasScope(caller, source)) throw new GatewayError("forbidden", "The key lacks the scope admin.");
  if (isOn(source, operator)) return toolOf(bodies, source);
  throw new GatewayError("forbidden", `${name} changes the gateway, and gateway.mcp.operator allows only reading.`);
}

function isOn({ hint }: McpSource, operator: McpSettings["operator"]): boolean {
  return operator === "write" || (operator === "read" && hint === "read");
}

function hasScope(caller: RestCaller, { scope }: McpSource): boolean {
  return scope === "chat" || isOperator(caller);
}

/** True for a caller that may use the operations of REST with the scope admin. */
export function isOperator({ scopes }: RestCaller): boolean {
  return scopes.includes("admin") || scopes.includes("console");
}

function toolOf(bodies: Bodies, source: McpSource): PlainTool {
  const { name, title, description, hint, isTrusted, inputSchema, outputSchema } = source;
  return {
    ...{ name, title, description, hint, isTrusted, inputSchema, outputSchema, startsTurn: false },
    answer: async (args, call) => answerOf(source, bodies, await run(source, bodies, args, call)),
  };
}

type Handler = (call: unknown, ctx: CallContext) => unknown;

/** Calls the body of the operation or method, with arguments that the contract allows. */
export async function run(
  { from, inputSchema }: McpSource,
  { rest, rpc }: Bodies,
  args: Args,
  ctx: CallContext,
): Promise<object> {
  const given = await checkedBy<Args>(inputSchema, args);
  if (from.surface === "rpc") {
    const method = (rpc as unknown as Record<string, Handler>)[from.method] as Handler;
    return (await method(given, ctx)) as object;
  }
  const operation = (rest as unknown as Record<string, Handler>)[from.operation] as Handler;
  const reply = (await operation(requestOf(from, given), ctx)) as object;
  return "as" in reply && "body" in reply ? (reply.body as object) : reply;
}

/** The arguments as the parts of a request: by name in the path and the query, and the others in the body. */
function requestOf({ path, query, body }: { path: string[]; query: string[]; body: boolean }, args: Args) {
  const pick = (isOf: (name: string) => boolean) =>
    Object.fromEntries(Object.entries(args).filter(([name]) => isOf(name)));
  const rest = pick((name) => !path.includes(name) && !query.includes(name));
  const named = { path: pick((name) => path.includes(name)), query: pick((name) => query.includes(name)) };
  return { ...named, headers: {}, body: body ? rest : undefined };
}

/** The reply as JSON, without the secrets that REST and RPC hide. */
function answerOf({ from }: McpSource, { hideInJson }: Bodies, reply: object): McpAnswer {
  const whole = JSON.stringify(reply);
  const text = from.surface === "rest" && returnsContent(from.operation) ? whole : hideInJson(whole);
  return { text, structured: JSON.parse(text) as object };
}
