import type { Config } from "#config/config.ts";
import type { CallContext } from "#core/call.ts";
import type { Core } from "#core/core.ts";
import type { McpTools } from "#core/mcp-tools.ts";
import type { RestHandlers } from "#generated/rest-handlers.ts";
import type { RpcHandlers } from "#generated/rpc-handlers.ts";
import { createMcpTools } from "#handlers/mcp/table.ts";
import type { McpServing } from "#wire/mcp/mcp.ts";
import { createMcpServing } from "#wire/mcp/mcp-server.ts";

type McpSurfaceParts = {
  core: Core;
  config: () => Config;
  version: string;
  hideInJson: (json: string) => string;
  /** The bodies of the operations that are tools. */
  rest: RestHandlers<CallContext>;
  rpc: RpcHandlers<CallContext>;
  /** Replaces the tools in tests. */
  mcpTools: McpTools | undefined;
};

/** The longest time that a call waits for its turn: clients give up after a minute. */
const WAIT_MS = 50_000;
/** The longest time that a call waits before its answer is a task. An answer at once saves the client a second request. */
const TASK_AFTER_MS = 1_000;

export type McpSurface = Pick<McpServing, "serve"> & {
  /** To be called when a list may have changed: subscribers are notified if it has. */
  changed(): void;
};

/** The server of the Model Context Protocol with the tools of this gateway. */
export function createMcpSurface({
  core,
  config,
  version,
  mcpTools,
  rest,
  rpc,
  hideInJson,
}: McpSurfaceParts): McpSurface {
  const settings = () => config().gateway.mcp;
  const waitMs = Math.min(WAIT_MS, core.replyWaitMs);
  const serving = createMcpServing({
    tools: mcpTools ?? createMcpTools(core, { rest, rpc, hideInJson, settings }),
    version,
    waitMs,
    taskAfterMs: Math.min(TASK_AFTER_MS, waitMs),
    retentionMs: () => config().sessions.retention,
  });
  let last = listedFrom(config(), core);
  return {
    serve: serving.serve,
    changed() {
      const next = listedFrom(config(), core);
      serving.changed({ tools: next.tools !== last.tools, resources: next.resources !== last.resources });
      last = next;
    },
  };
}

/** The parts of the configuration and of the skills on which the lists of all callers depend, as text. */
function listedFrom({ gateway, agents }: Config, { skills }: Core): Record<"tools" | "resources", string> {
  const { mcp, rest } = gateway;
  const keys = rest.auth.keys.map(({ name, scopes, agents }) => [name, scopes, agents]);
  const all = Object.entries(agents).map(([name, { description, skills }]) => ({ name, description, skills }));
  const served = mcp.skills ? skills.list() : [];
  const tools = served.map(({ skillId, description, params }) => [skillId, description, params?.schema]);
  const withSkills = all.flatMap(({ name, skills }) => (skills.length > 0 ? [[name, skills]] : []));
  return {
    tools: JSON.stringify([mcp, keys, all, tools]),
    resources: JSON.stringify([served.length > 0 && [mcp.agents, keys, withSkills], served]),
  };
}
