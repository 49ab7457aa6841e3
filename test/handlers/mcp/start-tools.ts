import { Ajv2020 } from "ajv/dist/2020.js";
import { expect } from "vitest";
import type { Agent } from "#core/agents/agents.ts";
import type { McpAnswer, McpCall, McpSettings, McpTool, McpTools, RestCaller } from "#core/mcp-tools.ts";
import { createMcpTools } from "#handlers/mcp/table.ts";
import { restHandlers } from "#handlers/rest/table.ts";
import { rpcHandlers } from "#handlers/rpc/table.ts";
import type { Delivery } from "#store/store.ts";
import { startPlayed } from "#test/core/played-core.ts";
import type { CoreOptions } from "#test/core/start-core.ts";

export const CHAT: RestCaller = { surface: "rest", tokenId: "t1", name: "chat", scopes: ["chat"] };
export const ADMIN: RestCaller = { surface: "rest", tokenId: "t2", name: "admin", scopes: ["admin"] };

const REQUEST = "req_01M7YN0XEMM1B7E5S8YF3GKP2N";

/** A value of the configuration that no tool may show. */
export const SECRET = "s3cr3t-value";
function hide(text: string): string {
  return text.replaceAll(SECRET, "[hidden]");
}

type CallOptions = Partial<McpCall> & { waitMs?: number };
type Options = Omit<CoreOptions, "agents"> & {
  agents?: readonly (Partial<Agent> & { name: string })[];
  mcp?: Partial<McpSettings>;
};

const ajv = new Ajv2020({ strict: false, validateFormats: false, allErrors: true });

/** The structured answer must be valid against the schema of its tool, which itself must be a schema. */
function requireValid(tool: McpTool | undefined, answer: McpAnswer | undefined): void {
  if (!tool || answer?.structured === undefined) return;
  const validate = ajv.compile(tool.outputSchema ?? {});
  expect(validate(answer.structured), `${tool.name}: ${ajv.errorsText(validate.errors)}`).toBe(true);
}

/** The tools over a core whose turns a test controls. Each answer of a call is validated against the schema of its tool. */
export async function startTools({ mcp, ...options }: Options = {}) {
  const started = await startPlayed(options);
  const core = { ...started.core, hide };
  const settings: McpSettings = { operator: false, skills: true, ...mcp };
  const rest = restHandlers(core, {
    callHook: () => Promise.reject(new Error("no webhooks here")),
    recordBodies: () => true,
    configState: () => {
      throw new Error("no configuration here");
    },
    hooksUse: async () => ({ tokens: [], mappings: new Map() }),
    readDraft: () => Promise.reject(new Error("no drafts here")),
    maySignIn: () => false,
  });
  const unused = () => {
    throw new Error("not used here");
  };
  const reloads = { agent: unused, system: unused } as unknown as Parameters<typeof rpcHandlers>[0]["reloads"];
  const rpc = rpcHandlers({ core, reloads, info: unused, version: "1.2.3", uptimeMs: () => 5 });
  const tools: McpTools = createMcpTools(core, { rest, rpc, settings: () => settings, hideInJson: hide });
  let calls = 0;
  const callOf = (caller: RestCaller, given: CallOptions): McpCall => {
    const deliveryId = `dlv_01M7YN0XEMM1B7E5S8YF3GK${String(100 + calls++)}`;
    const delivery = () => deliveryOf(deliveryId, started.clock.now());
    const signal = new AbortController().signal;
    return { caller, requestId: REQUEST, signal, hops: 0, idempotency: undefined, delivery, waitMs: 50_000, ...given };
  };
  return Object.assign(started, {
    tools,
    settings,
    names: async (caller: RestCaller = CHAT) => (await tools.list(caller)).map(({ name }) => name),
    async tool(name: string, caller: RestCaller = CHAT): Promise<McpTool> {
      const found = (await tools.list(caller)).find((tool) => tool.name === name);
      if (!found) throw new Error(`no tool ${name}`);
      return found;
    },
    async call(name: string, args: unknown = {}, { caller = CHAT, ...given }: CallOptions = {}) {
      const listed = await tools.list(caller);
      const answer = await tools.call(name, args, callOf(caller, given));
      requireValid(
        listed.find((tool) => tool.name === name),
        answer,
      );
      return answer;
    },
    async begin(name: string, args: unknown = {}, { caller = CHAT, ...given }: CallOptions = {}) {
      return await tools.start(name, args, callOf(caller, { waitMs: 0, ...given }));
    },
  });
}

function deliveryOf(deliveryId: string, now: number): Delivery {
  return {
    deliveryId,
    at: now,
    surface: "rest",
    operation: "mcp.tools/call",
    method: "POST",
    path: "/mcp",
    address: "127.0.0.1",
    requestId: REQUEST,
    caller: "chat",
    headers: "",
    body: undefined,
    showsWords: true,
    bytes: 0,
    answer: "accepted",
    status: undefined,
    mapping: undefined,
    replayOf: undefined,
    senderId: undefined,
    steps: [],
  };
}

/** The error with which a promise was rejected. */
export async function refusal(promise: Promise<unknown>): Promise<{ name: string; message: string }> {
  return await promise.then(
    () => ({ name: "no error", message: "" }),
    (error: Error) => ({ name: error.name, message: error.message }),
  );
}

/** The turn of an answer. */
export function turnOf(answer: McpAnswer | undefined): { turn_id: string; session_id: string; status: string } {
  return { turn_id: "", session_id: "", status: "", ...answer?.structured };
}
