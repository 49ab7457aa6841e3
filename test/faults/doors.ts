import { createA2aBackend } from "#backends/a2a/a2a.ts";
import type { Backend } from "#backends/backend.ts";
import { createHttpBackend } from "#backends/http/http.ts";
import { createPost } from "#channels/post.ts";
import { createSlackChannel } from "#channels/slack.ts";
import { createWebhookChannel } from "#channels/webhook.ts";
import { systemClock as clock } from "#kit/clock.ts";
import { BackendError } from "#kit/errors.ts";
import { createOtlpSink } from "#outbound/otlp.ts";
import { modelAt, openModels } from "#test/backends/model-kinds.ts";
import { collect, textOf, turnOf } from "#test/backends/suite.ts";
import { open as openTools } from "#test/tools/open-tools.ts";
import type { Reply, Request } from "./endings.ts";

/** `whole`: its answer had its full effect. `failed`: an error of the contract. */
type Outcome = "whole" | "failed";

/** An outbound connection of the gateway, to a server that `replyTo` describes. `padding` makes its answers long. */
type Door = {
  /** The number of requests of one use. */
  requests: number;
  replyTo: (request: Request, padding: string) => Reply;
  use: (url: string, padding: string, isCut: boolean) => Promise<Outcome>;
  /** Half of its answer is as valid as the complete one, so the end of the connection is the end of the answer. */
  canBeHalf?: boolean;
  /** Its answer is a failure, however it ends. */
  fails?: boolean;
};

const never = new AbortController().signal;
const JSON_TYPE = "application/json";
const STREAM = "text/event-stream";
function data(value: unknown) {
  return `data: ${JSON.stringify(value)}\n\n`;
}
function piecesOf(text: string): string[] {
  return text.match(/.{1,500}/g) ?? [];
}

/** Runs a turn, and checks that its reply is the complete text. */
async function reply(backend: Backend, text: string): Promise<Outcome> {
  try {
    const got = textOf(await collect(backend.run(turnOf(), never)));
    if (got !== text) throw new Error(`a reply of ${got.length} characters in place of ${text.length} was whole`);
    return "whole";
  } catch (error) {
    if (error instanceof BackendError) return "failed";
    throw error;
  } finally {
    await backend.close?.();
  }
}

function httpAgent(replyTo: (padding: string) => Reply, more: Partial<Door> = {}): Door {
  return {
    requests: 1,
    replyTo: (_, padding) => replyTo(padding),
    use: (url, padding) =>
      reply(
        createHttpBackend({
          agent: "main",
          models: undefined,
          url: `${url}/turns`,
          headers: {},
          secret: undefined,
          history: false,
          connectMs: 2_000,
          clock,
        }),
        padding,
      ),
    ...more,
  };
}

function model(kind: "openai-compatible" | "anthropic", replyTo: (padding: string) => Reply, fails = false): Door {
  return {
    requests: 1,
    replyTo: (_, padding) => replyTo(padding),
    use: (url, padding) => reply(openModels({ main: modelAt(kind, url) }), padding),
    fails,
  };
}

function chatEvents(padding: string): Reply {
  return {
    type: STREAM,
    body: `${piecesOf(padding)
      .map((content) => data({ choices: [{ delta: { content } }] }))
      .join("")}${data({ choices: [{ delta: {}, finish_reason: "stop" }] })}data: [DONE]\n\n`,
  };
}

function message(data: { type: string }) {
  return `event: ${data.type}\ndata: ${JSON.stringify(data)}\n\n`;
}
const usage = { input_tokens: 1, output_tokens: 1 };
function messageEvents(padding: string): Reply {
  return {
    type: STREAM,
    body: [
      {
        type: "message_start",
        message: { model: "m", id: "i", type: "message", role: "assistant", content: [], stop_reason: null, usage },
      },
      { type: "content_block_start", index: 0, content_block: { type: "text", text: "" } },
      ...piecesOf(padding).map((text) => ({
        type: "content_block_delta",
        index: 0,
        delta: { type: "text_delta", text },
      })),
      { type: "content_block_stop", index: 0 },
      { type: "message_delta", delta: { stop_reason: "end_turn", stop_sequence: null }, usage },
      { type: "message_stop" },
    ]
      .map(message)
      .join(""),
  };
}

const ANNOUNCED = {
  turnId: "turn_1",
  sessionId: "s",
  agent: "main",
  channel: "ops",
  model: undefined,
  reply: "Hello.",
  usage: { input: 1, output: 1 },
  deliveryId: undefined,
  createdAt: 0,
  endedAt: 1,
  hops: 0,
} as never;
function channel(kind: "webhook" | "slack", status: number): Door {
  return {
    requests: 1,
    replyTo: (_, padding) => ({ status, type: "text/html", body: padding }),
    fails: status !== 200,
    use: async (url) => {
      const parts = { post: createPost({ clock }), clock };
      const secret = `whsec_${Buffer.alloc(32, 1).toString("base64")}`;
      const made = kind === "slack" ? createSlackChannel({ url }, parts) : createWebhookChannel({ url, secret }, parts);
      return (await made.announce(ANNOUNCED, never)).kind === "delivered" ? "whole" : "failed";
    },
    // Only the head of its answer matters.
    canBeHalf: true,
  };
}

function a2a(streaming: boolean): Door {
  return {
    requests: 2,
    replyTo: ({ method, body }, padding) => {
      if (method === "GET")
        return {
          type: JSON_TYPE,
          body: JSON.stringify({
            name: "a",
            description: padding,
            version: "1",
            skills: [],
            capabilities: { streaming },
            defaultInputModes: ["text/plain"],
            defaultOutputModes: ["text/plain"],
            supportedInterfaces: [{ url: `${address}/a2a`, protocolBinding: "JSONRPC", protocolVersion: "1.0" }],
          }),
        };
      const { id } = JSON.parse(body) as { id: unknown };
      const said = { message: { messageId: "m", contextId: "c", role: "ROLE_AGENT", parts: [{ text: padding }] } };
      const wrapped = { jsonrpc: "2.0", id, result: said };
      return streaming ? { type: STREAM, body: data(wrapped) } : { type: JSON_TYPE, body: JSON.stringify(wrapped) };
    },
    use: (url, padding) => {
      address = url;
      return reply(createA2aBackend({ url, headers: {}, connectMs: 2_000, clock }), padding);
    },
  };
}
let address = "";

function mcp(isStream: boolean): Door {
  return {
    requests: 5,
    replyTo: ({ method, body }, padding) => {
      if (method !== "POST") return { status: 405, body: "" };
      const { id, method: name } = JSON.parse(body) as { id?: unknown; method: string };
      if (id === undefined) return { status: 202, body: "" };
      const results: Record<string, object> = {
        initialize: {
          protocolVersion: "2025-06-18",
          capabilities: { tools: {} },
          serverInfo: { name: padding, version: "1" },
        },
        "tools/list": { tools: [{ name: "say", description: padding, inputSchema: { type: "object" } }] },
        "tools/call": { content: [{ type: "text", text: padding }] },
      };
      const answer = { jsonrpc: "2.0", id, result: results[name] ?? {} };
      return isStream && name === "tools/call"
        ? { type: STREAM, body: data(answer) }
        : { type: JSON_TYPE, body: JSON.stringify(answer) };
    },
    use: async (url, padding, isCut) => {
      // The gateway waits for the rest of a stream that was cut.
      const callMs = isCut ? 300 : 20_000;
      await using tools = openTools({ type: "http", url, headers: {} }, { callMs, output: 100_000 });
      const { tools: found, missing } = await tools.source.tools(never, 0);
      const [tool] = found;
      if (!tool) {
        if (missing.length === 0) throw new Error("no tool, and no reason");
        return "failed";
      }
      const answered = await tool.call({}, never).catch(() => undefined);
      if (answered === undefined) return "failed";
      if (!answered.includes(padding)) throw new Error("a part of the tool's answer was taken for the whole");
      return "whole";
    },
  };
}

const collector: Door = {
  requests: 1,
  replyTo: (_, padding) => ({ type: JSON_TYPE, body: JSON.stringify({ partialSuccess: { errorMessage: padding } }) }),
  use: async (url) => {
    let isDropped = false;
    const onDrop = () => {
      isDropped = true;
    };
    const sink = createOtlpSink({
      url: `${url}/v1/traces`,
      headers: {},
      resource: {},
      version: "1",
      timeoutMs: 5_000,
      queue: 10,
      batch: 1,
      delayMs: 0,
      clock,
      onDrop,
      hideInJson: (json: string) => json,
    });
    const span = { traceId: "1", spanId: "2", parentId: undefined, name: "n", kind: "internal" } as const;
    sink.add([{ ...span, from: 0, to: 1, attributes: {}, failure: undefined }]);
    await sink.close();
    return isDropped ? "failed" : "whole";
  },
  canBeHalf: true,
};

/** Every outbound connection of the gateway. */
export const DOORS: Readonly<Record<string, Door>> = {
  "an HTTP agent's JSON": httpAgent((padding) => ({ type: JSON_TYPE, body: JSON.stringify({ reply: padding }) })),
  "an HTTP agent's text": httpAgent((padding) => ({ type: "text/plain", body: padding }), { canBeHalf: true }),
  "an HTTP agent's stream": httpAgent((padding) => ({
    type: STREAM,
    body: `${piecesOf(padding)
      .map((text) => data({ text }))
      .join("")}event: done\ndata: {}\n\n`,
  })),
  "an HTTP agent's error": httpAgent((padding) => ({ status: 500, type: "text/html", body: padding }), { fails: true }),
  "a model's stream": model("openai-compatible", chatEvents),
  "a model's stream by an SDK": model("anthropic", messageEvents),
  "a model's error": model(
    "openai-compatible",
    (body) => ({ status: 400, type: JSON_TYPE, body: JSON.stringify({ error: { message: body } }) }),
    true,
  ),
  "a webhook channel": channel("webhook", 200),
  "a webhook channel's error": channel("webhook", 500),
  "a Slack channel": channel("slack", 200),
  "an A2A agent's message": a2a(false),
  "an A2A agent's stream": a2a(true),
  "an MCP server's JSON": mcp(false),
  "an MCP server's stream": mcp(true),
  "a collector of traces": collector,
};
