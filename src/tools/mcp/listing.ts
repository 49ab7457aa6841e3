import type { Client } from "@modelcontextprotocol/sdk/client/index.js";
import type { Tool as ServerTool } from "@modelcontextprotocol/sdk/types.js";

/** The tools of a server. `large`: names of those that say too much of themselves. */
export type Listed = { tools: readonly ServerTool[]; large: readonly string[] };

const PAGES = 20;
const TOOLS = 500;
const TOOL_CHARACTERS = 64 * 1024;
const ALL_CHARACTERS = 1024 * 1024;

/** Reads the tools that a server has. */
export const listTools = async (client: Client, timeoutMs: number): Promise<Listed> => {
  const { ListToolsResultSchema } = await import("@modelcontextprotocol/sdk/types.js");
  const tools: ServerTool[] = [];
  let cursor: string | undefined;
  for (let page = 0; page < PAGES && tools.length < TOOLS; page++) {
    // Not by the client's own method, which compiles what each tool says of its answers.
    const params = cursor === undefined ? {} : { cursor };
    const answer = await client.request({ method: "tools/list", params }, ListToolsResultSchema, {
      timeout: timeoutMs,
    });
    tools.push(...answer.tools);
    cursor = answer.nextCursor;
    if (cursor === undefined) break;
  }
  return withoutLarge(tools.slice(0, TOOLS));
};

/** What a tool says of itself goes to the model with every request: one that says too much is left out, and all of them past a limit. */
const withoutLarge = (all: readonly ServerTool[]): Listed => {
  let left = ALL_CHARACTERS;
  const large: string[] = [];
  const tools = all.filter(({ name, description = "", inputSchema }) => {
    const characters = name.length + description.length + JSON.stringify(inputSchema).length;
    const fits = characters <= TOOL_CHARACTERS && characters <= left;
    if (fits) left -= characters;
    else large.push(name);
    return fits;
  });
  return { tools, large };
};
