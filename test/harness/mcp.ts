import { Client, ProtocolError, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { SECRETS, type TestGateway } from "./gateway.ts";

/** The result of a tool's call. `refused`: the name of the error if the call itself was refused. */
export type McpResult = { refused?: string; isError?: boolean; text: string; structured?: Record<string, unknown> };

/** A client of the MCP server: of 2026-07-28 by default, or of the revisions with a handshake. */
export async function openMcp({ url }: TestGateway, key: string = SECRETS.adminKey, mode: "auto" | "legacy" = "auto") {
  const client = new Client({ name: "tests", version: "1.0.0" }, { versionNegotiation: { mode } });
  const headers = { authorization: `Bearer ${key}` };
  await client.connect(new StreamableHTTPClientTransport(new URL("/mcp", url), { requestInit: { headers } }));
  return {
    tools: async () => (await client.listTools()).tools,
    async call(name: string, args: Record<string, unknown> = {}): Promise<McpResult> {
      try {
        const { content, isError, structuredContent } = await client.callTool({ name, arguments: args });
        const text = content.map((part) => (part.type === "text" ? part.text : "")).join("\n");
        return {
          text,
          ...(isError && { isError }),
          ...(structuredContent !== undefined && { structured: structuredContent as Record<string, unknown> }),
        };
      } catch (error) {
        if (!(error instanceof ProtocolError)) throw error;
        const { name: refused = "" } = error.data as { name?: string };
        return { refused, text: error.message };
      }
    },
    [Symbol.asyncDispose]: () => client.close(),
  };
}
