// MCP servers made with the official packages of both revisions: `@modelcontextprotocol/server` and the SDK before it.
import { McpServer as OldServer } from "@modelcontextprotocol/sdk/server/mcp.js";
import { inputRequired, McpServer } from "@modelcontextprotocol/server";
import { z } from "zod";

/** What a server keeps between the requests of one process. @param {() => void} changed */
export function newState(changed = () => {}) {
  return { hasMore: false, changed };
}

const text = (words) => ({ content: [{ type: "text", text: words }] });

/** The tools of both. `notify` sends a notification about the call. */
function addTools(server, { state, era, notify, more }) {
  const tool = (name, config, run) => server.registerTool(name, config, run);
  tool("era", { description: "Says the revision." }, () => text(era));
  tool(
    "add",
    {
      description: "Adds.",
      inputSchema: z.object({ a: z.number(), b: z.number() }),
      outputSchema: z.object({ sum: z.number() }),
    },
    ({ a, b }) => ({ content: [], structuredContent: { sum: a + b } }),
  );
  tool("fail", {}, () => ({ isError: true, ...text("There is no such customer.") }));
  tool("throw", {}, () => {
    throw new Error("The quota is used up.");
  });
  tool("slow", { inputSchema: z.object({ ms: z.number(), notices: z.number() }) }, async ({ ms, notices }, context) => {
    for (let n = 1; n <= notices; n++)
      await notify(context, { method: "notifications/progress", params: { progressToken: 0, progress: n } });
    await new Promise((resolve) => setTimeout(resolve, ms));
    return text("done");
  });
  tool("grow", {}, () => {
    state.hasMore = true;
    more?.();
    state.changed();
    return text("grown");
  });
  if (state.hasMore) addMore(server);
}

function addMore(server) {
  server.registerTool("more", {}, () => text("more"));
}

/** A server of 2026-07-28, which `createMcpHandler` and `serveStdio` also let speak 2025-11-25. */
export function newServer(state, era) {
  const server = new McpServer({ name: "official", version: "2.4.0" });
  const notify = (context, notification) => context.mcpReq.notify(notification);
  addTools(server, { state, era, notify, more: state.isLasting ? () => addMore(server) : undefined });
  const question = { message: "Who?", requestedSchema: { type: "object", properties: { who: { type: "string" } } } };
  server.registerTool("ask", {}, (context) =>
    era === "legacy"
      ? context.mcpReq.elicitInput(question)
      : inputRequired({ inputRequests: { who: inputRequired.elicit(question) } }),
  );
  return server;
}

/** A server of 2025-11-25. */
export function newOldServer(state) {
  const server = new OldServer({ name: "official", version: "1.32.2" });
  const notify = (context, notification) => context.sendNotification(notification);
  addTools(server, { state, era: "old", notify, more: () => addMore(server) });
  const schema = { type: "object", properties: { who: { type: "string" } } };
  server.registerTool("ask", {}, async () => {
    await server.server.elicitInput({ message: "Who?", requestedSchema: schema });
    return text("asked");
  });
  return server;
}
