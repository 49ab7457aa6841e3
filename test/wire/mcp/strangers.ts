import { createMCPClient } from "@ai-sdk/mcp";
import { Experimental_StdioMCPTransport as AiStdioTransport } from "@ai-sdk/mcp/mcp-stdio";
import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";
import { createTaskSessionFromClient, resultFromTaskOutcome } from "@modelcontextprotocol/ext-tasks/client";
import { Client as OldClient } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport as OldStdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { StreamableHTTPClientTransport as OldHttpTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { onTestFinished } from "vitest";
import { emptyFolder } from "#test/cli/cli.ts";
import { main } from "#test/harness/process.ts";

export const VERSION = "2026-07-28";
const INFO = { name: "stranger", version: "1.0.0" };

/** The result of a call, as far as the strangers agree on its type. */
export type Result = {
  content: { type: string; text: string }[];
  structuredContent?: Record<string, unknown>;
  isError?: boolean;
  _meta?: Record<string, unknown>;
};
type CallOptions = { signal?: AbortSignal; onprogress?: (progress: { progress: number }) => void };
/** A published MCP client. */
export type Stranger = {
  list(): Promise<string[]>;
  call(name: string, args?: object, options?: CallOptions): Promise<Result>;
  close(): Promise<void>;
};
type Connect = (url: string, key: string) => Promise<Stranger>;

type Mode = "legacy" | "auto" | { pin: string };

function httpTransport(url: string, key: string) {
  return new StreamableHTTPClientTransport(new URL(`${url}/mcp`), {
    requestInit: { headers: { authorization: `Bearer ${key}` } },
  });
}

function bridgeTo(url: string, key: string, onFinished: typeof onTestFinished) {
  return {
    command: process.execPath,
    args: [main, "mcp"],
    env: { GATEWAY_URL: url, REST_API_KEY: key },
    cwd: emptyFolder(onFinished),
  };
}

/** The client 2.4, connected. */
export async function connectClient(
  url: string,
  key: string,
  mode: Mode,
  way: "http" | "stdio" = "http",
  onFinished: typeof onTestFinished = onTestFinished,
) {
  const client = new Client(INFO, { versionNegotiation: { mode } });
  onFinished(() => client.close());
  await client.connect(
    way === "http" ? httpTransport(url, key) : new StdioClientTransport(bridgeTo(url, key, onFinished)),
  );
  return client;
}

function asStranger(client: Client | OldClient): Stranger {
  return {
    list: async () => (await client.listTools()).tools.map(({ name }) => name),
    call: async (name, args = {}, options) =>
      (await (client as Client).callTool({ name, arguments: args as Record<string, unknown> }, options)) as Result,
    close: () => client.close(),
  };
}

function newClient(mode: Mode, way: "http" | "stdio"): Connect {
  return async (url, key) => asStranger(await connectClient(url, key, mode, way));
}

function oldClient(way: "http" | "stdio"): Connect {
  return async (url, key) => {
    const client = new OldClient(INFO);
    onTestFinished(() => client.close());
    const headers = { authorization: `Bearer ${key}` };
    const http = () => new OldHttpTransport(new URL(`${url}/mcp`), { requestInit: { headers } });
    // Its type lacks `undefined` for optional fields.
    const transport = way === "http" ? http() : new OldStdioClientTransport(bridgeTo(url, key, onTestFinished));
    await client.connect(transport as Parameters<typeof client.connect>[0]);
    return asStranger(client);
  };
}

type AiTransport = Parameters<typeof createMCPClient>[0]["transport"];

function aiSdk(transportTo: (url: string, key: string) => AiTransport): Connect {
  return async (url, key) => asAiStranger(await createMCPClient({ transport: transportTo(url, key) }));
}

function asAiStranger(client: Awaited<ReturnType<typeof createMCPClient>>): Stranger {
  onTestFinished(() => client.close());
  return {
    list: async () => Object.keys(await client.tools()),
    async call(name, args = {}, { signal } = {}) {
      const tool = (await client.tools())[name];
      if (!tool) throw new Error(`no tool ${name}`);
      return (await tool.execute(args, {
        toolCallId: "1",
        messages: [],
        ...(signal && { abortSignal: signal }),
      })) as Result;
    },
    close: () => client.close(),
  };
}

/** A session of the tasks extension. Its raw requests are sent to the address as they are. */
export async function openTasks(url: string, key: string, onFinished: typeof onTestFinished = onTestFinished) {
  const client = await connectClient(url, key, { pin: VERSION }, "http", onFinished);
  let id = 1_000;
  const session = createTaskSessionFromClient(client, {
    endpointId: url,
    v2RequestFraming: {
      protocolVersion: VERSION,
      clientInfo: INFO,
      clientCapabilities: { extensions: { "io.modelcontextprotocol/tasks": {} } },
    },
    async rawDispatch(request, { signal } = {}) {
      const { method, params } = request as { method: string; params: Record<string, unknown> };
      const response = await fetch(`${url}/mcp`, {
        method: "POST",
        headers: {
          authorization: `Bearer ${key}`,
          accept: "application/json, text/event-stream",
          "content-type": "application/json",
          "mcp-protocol-version": VERSION,
          "mcp-method": method,
          "mcp-name": String(params.name ?? params.taskId),
        },
        body: JSON.stringify({ jsonrpc: "2.0", id: id++, method, params }),
        ...(signal && { signal }),
      });
      const { result, error } = (await response.json()) as { result: never; error?: never };
      return error ? { kind: "error", error } : { kind: "result", result };
    },
  });
  onFinished(() => session.close());
  return session;
}

const tasks: Connect = async (url, key) => {
  const session = await openTasks(url, key);
  const client = await connectClient(url, key, { pin: VERSION });
  return {
    ...asStranger(client),
    async call(name, args = {}) {
      const execution = await session.callTool(name, args as never);
      const { outcome } = await execution.settle();
      return resultFromTaskOutcome(outcome) as unknown as Result;
    },
  };
};

/** The clients by their package, protocol and transport. */
export const STRANGERS: Readonly<Record<string, Connect>> = {
  "client 2.4, modern, HTTP": newClient({ pin: VERSION }, "http"),
  "client 2.4, auto, HTTP": newClient("auto", "http"),
  "client 2.4, legacy, HTTP": newClient("legacy", "http"),
  "client 2.4, modern, stdio": newClient({ pin: VERSION }, "stdio"),
  "client 2.4, auto, stdio": newClient("auto", "stdio"),
  "client 2.4, legacy, stdio": newClient("legacy", "stdio"),
  "sdk 1.32, HTTP": oldClient("http"),
  "sdk 1.32, stdio": oldClient("stdio"),
  "AI SDK, HTTP": aiSdk((url, key) => ({
    type: "http",
    url: `${url}/mcp`,
    headers: { Authorization: `Bearer ${key}` },
  })),
  "AI SDK, stdio": aiSdk((url, key) => new AiStdioTransport(bridgeTo(url, key, onTestFinished))),
  "ext-tasks, HTTP": tasks,
};
