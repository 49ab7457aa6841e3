import { createServer, type IncomingMessage, type RequestListener, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { Readable } from "node:stream";
import type { ReadableStream } from "node:stream/web";
import { createMcpHandler, McpServer } from "@modelcontextprotocol/server";
import { onTestFinished } from "vitest";
import { z } from "zod";

export const KEY = "rest-key-of-the-bridge";

/** A stand-in for the gateway's `/mcp`, made with the official package. It can be stopped, and started again at the same address. */
export async function startMcpServer() {
  /** The calls of `wait` that have begun, and those that were cancelled. */
  const waiting: { release: (text: string) => void; isCancelled: boolean }[] = [];
  const seen: IncomingMessage[] = [];
  const listeners = new Set<() => void>();
  const changed = (): void => {
    for (const listener of listeners) listener();
  };

  function createTools(): McpServer {
    const server = new McpServer(
      { name: "stand-in", version: "1.0.0" },
      { capabilities: { tools: { listChanged: true } } },
    );
    server.registerTool("echo", { inputSchema: z.object({ text: z.string() }) }, ({ text }) => ({
      content: [{ type: "text", text }],
    }));
    server.registerTool("wait", { inputSchema: z.object({}) }, async (_, { mcpReq }) => {
      const progressToken = mcpReq._meta?.progressToken;
      if (progressToken !== undefined)
        await mcpReq.notify({ method: "notifications/progress", params: { progressToken, progress: 1 } });
      const call = { release: (_: string): void => {}, isCancelled: false };
      const text = await new Promise<string>((resolve) => {
        call.release = resolve;
        mcpReq.signal.addEventListener("abort", () => {
          call.isCancelled = true;
          resolve("");
          changed();
        });
        waiting.push(call);
        changed();
      });
      return { content: [{ type: "text", text }] };
    });
    return server;
  }

  const handler = createMcpHandler(createTools);
  let answer: RequestListener | undefined;
  const serve = async (req: IncomingMessage, res: ServerResponse): Promise<void> => {
    seen.push(req);
    changed();
    if (answer) return void answer(req, res);
    if (req.headers.authorization !== `Bearer ${KEY}`)
      return void res.writeHead(401, { "content-type": "application/problem+json" }).end('{"title":"Unauthenticated"}');
    const stop = new AbortController();
    res.on("close", () => stop.abort());
    const body = req.method === "POST" ? Buffer.concat(await req.toArray()) : null;
    const request = new Request(`http://localhost${req.url}`, {
      method: req.method ?? "GET",
      headers: req.headers as Record<string, string>,
      body,
      signal: stop.signal,
    });
    const response = await handler.fetch(request);
    res.writeHead(response.status, Object.fromEntries(response.headers));
    if (response.body === null) return void res.end();
    Readable.fromWeb(response.body as ReadableStream)
      .on("error", () => res.destroy())
      .pipe(res);
  };

  let port = 0;
  const start = async (): Promise<() => Promise<void>> => {
    const server = createServer((req, res) => void serve(req, res));
    await new Promise<void>((resolve) => server.listen(port, "127.0.0.1", resolve));
    port = (server.address() as AddressInfo).port;
    return async () => {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    };
  };
  let stop = await start();
  onTestFinished(() => stop());
  return {
    url: `http://127.0.0.1:${port}`,
    waiting,
    seen,
    handler,
    /** Waits until something is true of what it got. */
    async until(isTrue: () => boolean): Promise<void> {
      while (!isTrue())
        await new Promise<void>((resolve) => {
          const listener = (): void => {
            listeners.delete(listener);
            resolve();
          };
          listeners.add(listener);
        });
    },
    /** Answers every request in place of the handler. */
    answerWith(listener: RequestListener | undefined): void {
      answer = listener;
    },
    stop: () => stop(),
    async start(): Promise<void> {
      stop = await start();
    },
  };
}
