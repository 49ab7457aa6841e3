import { randomUUID } from "node:crypto";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { buffer } from "node:stream/consumers";
import { StreamableHTTPServerTransport } from "@modelcontextprotocol/sdk/server/streamableHttp.js";
import { createMcpHandler } from "@modelcontextprotocol/server";
import { newOldServer, newServer, newState } from "./servers.mjs";

export type Revision = "2026-07-28" | "2025-11-25" | "both";
type Handle = (req: IncomingMessage, res: ServerResponse) => Promise<void>;

/** An official MCP server over HTTP, with the requests that it got. */
export async function serveHttp(revision: Revision, port = 0) {
  const handle = revision === "2025-11-25" ? oldHandler() : handler(revision);
  const methods: string[] = [];
  const server = createServer((req, res) => {
    methods.push(String(req.headers["mcp-method"] ?? req.method));
    handle(req, res).catch(() => res.destroy());
  });
  await new Promise<void>((resolve) => server.listen(port, "127.0.0.1", resolve));
  const { port: bound } = server.address() as AddressInfo;
  return {
    reach: { type: "http", url: `http://127.0.0.1:${bound}/mcp`, headers: {} } as const,
    port: bound,
    methods,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

function handler(revision: Revision): Handle {
  const state = newState(() => handle.notify.toolsChanged());
  const handle = createMcpHandler(({ era }) => newServer(state, era), {
    legacy: revision === "both" ? "stateless" : "reject",
  });
  return async (req, res) => {
    const left = new AbortController();
    res.once("close", () => left.abort());
    const body = req.method === "POST" ? await buffer(req) : null;
    const url = `http://${req.headers.host}${req.url}`;
    const headers = new Headers(req.headers as Record<string, string>);
    const request = new Request(url, { method: String(req.method), headers, body, signal: left.signal });
    const answer = await handle.fetch(request);
    res.writeHead(answer.status, Object.fromEntries(answer.headers));
    res.flushHeaders();
    for await (const piece of answer.body ?? []) res.write(piece);
    res.end();
  };
}

function oldHandler(): Handle {
  const state = newState();
  const sessions = new Map<string, StreamableHTTPServerTransport>();
  return async (req, res) => {
    const id = req.headers["mcp-session-id"];
    let transport = sessions.get(String(id));
    if (!transport && id !== undefined) return void res.writeHead(404).end();
    if (!transport) {
      transport = new StreamableHTTPServerTransport({
        sessionIdGenerator: () => randomUUID(),
        onsessioninitialized: (session) => void sessions.set(session, transport as StreamableHTTPServerTransport),
      });
      await newOldServer(state).connect(transport);
    }
    await transport.handleRequest(req, res);
  };
}
