import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { onTestFinished } from "vitest";
import type { McpAnswer, McpCall, McpTask, McpTool, McpTools } from "#core/mcp-tools.ts";
import { SECRETS } from "#test/harness/gateway.ts";
import { noteChecked } from "#test/harness/ledger.ts";

/** The section of the configuration that turns the MCP server on. */
export const OPEN = { mcp: { enabled: true } };

export const MODERN = "2026-07-28";
export const LEGACY = "2025-11-25";
export type Revision = typeof MODERN | typeof LEGACY;

/** The official client, connected. It negotiates the revision, or uses the one before. */
export async function openClient(url: string, { key = SECRETS.key as string, revision = MODERN as Revision } = {}) {
  const mode = revision === MODERN ? "auto" : "legacy";
  const client = new Client({ name: "tests", version: "1" }, { versionNegotiation: { mode } });
  const headers = { authorization: `Bearer ${key}` };
  await client.connect(new StreamableHTTPClientTransport(new URL("/mcp", url), { requestInit: { headers } }));
  onTestFinished(() => client.close());
  return client;
}

type Sent = {
  key?: string | null;
  headers?: Record<string, string | null>;
  capabilities?: object;
  revision?: Revision;
  httpMethod?: string;
  signal?: AbortSignal;
};

/** A message as the protocol has it, with the envelope of the revision. */
export function messageOf(method: string, params: object = {}, { capabilities = {}, revision = MODERN }: Sent = {}) {
  const envelope = {
    "io.modelcontextprotocol/protocolVersion": revision,
    "io.modelcontextprotocol/clientInfo": { name: "tests", version: "1" },
    "io.modelcontextprotocol/clientCapabilities": capabilities,
  };
  const given = params as { _meta?: object };
  const all = revision === MODERN ? { ...params, _meta: { ...envelope, ...given._meta } } : params;
  return { jsonrpc: "2.0", id: 7, method, params: all };
}

/** Sends a body without a client. The headers are those of the message, but for `headers`; null leaves one out. */
export async function post(url: string, body: unknown, sent: Sent = {}): Promise<Response> {
  const { method, params } = (body ?? {}) as { method?: string; params?: { name?: string; taskId?: string } };
  const { key = SECRETS.key, headers = {}, revision = MODERN, httpMethod = "POST", signal } = sent;
  const name = params?.name ?? params?.taskId;
  const all: Record<string, string | null> = {
    "content-type": "application/json",
    accept: "application/json, text/event-stream",
    authorization: key === null ? null : `Bearer ${key}`,
    "mcp-protocol-version": revision,
    ...(revision === MODERN && { "mcp-method": method ?? null, "mcp-name": name ?? null }),
    ...headers,
  };
  const kept = Object.entries(all).filter((one): one is [string, string] => typeof one[1] === "string");
  const text = typeof body === "string" ? body : JSON.stringify(body);
  const res = await fetch(new URL("/mcp", url), {
    method: httpMethod,
    headers: kept,
    body: text,
    ...(signal && { signal }),
  });
  // The contract does not list the messages of MCP.
  noteChecked(res.headers.get("x-request-id") ?? "");
  return res;
}

/** Sends a message, and reads its whole answer: JSON, or the last event of a stream. */
export async function call(url: string, method: string, params: object = {}, sent: Sent = {}) {
  const res = await post(url, messageOf(method, params, sent), sent);
  const text = await res.text();
  const isStream = res.headers.get("content-type") === "text/event-stream";
  const events = [...text.matchAll(/^data: (.*)$/gm)].map(([, data = ""]) => JSON.parse(data));
  return { status: res.status, headers: res.headers, events, json: isStream ? events.at(-1) : JSON.parse(text) };
}

/** Tools of a test in place of the gateway's. */
export function fakeTools(tools: Partial<McpTools> = {}): McpTools {
  return {
    list: async () => [ASK, LOOK],
    find: (name) => [ASK, LOOK].find((tool) => tool.name === name),
    call: async () => undefined,
    start: async () => undefined,
    task: () => Promise.reject(new Error("no tasks")),
    cancel: () => Promise.reject(new Error("no tasks")),
    skills: { list: () => [], find: () => undefined },
    ...tools,
  };
}

const schema = { type: "object" };
const ASK: McpTool = {
  ...{ name: "ask_main", title: "Ask main", description: "Asks.", inputSchema: schema, outputSchema: undefined },
  ...{ hint: "write", isTrusted: false, startsTurn: true },
};
const LOOK: McpTool = { ...ASK, name: "look", title: "Look", hint: "read", startsTurn: false };

/** Calls of tools that the test answers. */
export function heldTools(tools: Partial<McpTools> = {}) {
  const calls: { name: string; args: unknown; call: McpCall; answer(answer: McpAnswer): void }[] = [];
  const waiting: (() => void)[] = [];
  const held = fakeTools({
    call: (name, args, call) =>
      new Promise((resolve) => {
        calls.push({ name, args, call, answer: resolve });
        for (const next of waiting.splice(0)) next();
      }),
    ...tools,
  });
  return {
    tools: held,
    /** The next call, as soon as it is there. */
    async next() {
      while (calls.length === 0) await new Promise<void>((resolve) => waiting.push(resolve));
      return calls.shift() as (typeof calls)[number];
    },
  };
}

/** A task with the state of a turn. */
export function taskOf(status: McpTask["status"], answer?: McpAnswer): McpTask {
  const turn = { turnId: "turn_1", createdAt: 1_000, startedAt: 2_000, endedAt: answer && 3_000 };
  return { turn: turn as McpTask["turn"], status, answer };
}
