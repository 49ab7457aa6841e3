import { type McpSource, mcpTools } from "#generated/mcp-tools.ts";

/** The tool of the contract with this name, which must exist. */
export function sourceOf(name: string): McpSource {
  const source = mcpTools.find((one) => one.name === name);
  if (!source) throw new Error(`no operation or method has the x-mcp name ${name}`);
  return source;
}

/** The named shapes that a schema of the contract refers to. */
export function shapesOf(schema: object): Readonly<Record<string, object>> {
  return (schema as { $defs?: Record<string, object> }).$defs ?? {};
}
