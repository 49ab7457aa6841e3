// Lists the tools of the server at the last argument, and calls them by the code that calls the tools of an agent.
import { open, signal } from "../open-tools.ts";

type Call = { name: string; arguments: unknown };

/** Arguments of the types that a schema names. The schema of another tool is one of them. */
function argumentsFor(parameters: Readonly<Record<string, unknown>>, schema: unknown): unknown {
  const properties = (parameters.properties ?? {}) as Record<string, { type?: string }>;
  const values: Record<string, unknown> = { string: "x", boolean: true, number: 1, integer: 1, object: schema };
  return Object.fromEntries(Object.entries(properties).map(([name, { type = "" }]) => [name, values[type]]));
}

// Timers alone do not keep a process running.
const alive = setInterval(() => {}, 60_000);
const files = open({ type: "http", url: process.argv.at(-1) as string, headers: {} }, { callMs: 10_000 });
const { tools } = await files.source.tools(signal, 0);
const named = tools.map(({ name, parameters }) => ({
  name: name.replace("files__", ""),
  arguments: argumentsFor(parameters, tools[0]?.parameters),
}));
const { toolCalls = named } = JSON.parse(process.env.MCP_CONFORMANCE_CONTEXT ?? "{}") as { toolCalls?: Call[] };
for (const call of toolCalls) await files.call(call.name, call.arguments).catch(() => {});
await files[Symbol.asyncDispose]();
clearInterval(alive);
