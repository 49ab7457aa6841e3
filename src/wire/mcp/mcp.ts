import type { RestCaller } from "#core/mcp-tools.ts";
import { GatewayError } from "#kit/errors.ts";
import { IN_STRETCHES_FROM } from "#kit/utf8.ts";
import { authenticate } from "#wire/call/auth.ts";
import { parseJson, parseLargeText, readBody, requireJson, textOf } from "#wire/call/body.ts";
import { failCall, type WireCall } from "#wire/call/call.ts";
import type { DoorAt } from "#wire/call/front.ts";
import type { CountRequest } from "#wire/call/rate-limit.ts";
import { asMcpError } from "./mcp-errors.ts";

/** The server behind the door. */
export type McpServing = {
  /** Answers a message of an authenticated caller. */
  serve(call: WireCall, caller: RestCaller, message: object, raw: Buffer): Promise<void>;
  /** Notifies subscribers of the lists that have changed. */
  changed(lists: { tools: boolean; resources: boolean }): void;
};

type McpDoorParts = {
  /** The owner of the key with this hash; undefined for one that is not valid. */
  identify: (hash: Buffer) => RestCaller | undefined;
  rateLimit: CountRequest;
  bodyLimit: () => number;
  /** Loads the server at the first call. */
  serving: () => Promise<McpServing>;
};

export const MCP_PATH = "/mcp";
const TAKES = "`/mcp` takes a REST key: `Authorization: Bearer <key>`.";

/** `POST /mcp`, the Streamable HTTP transport of the Model Context Protocol: authentication, then the rate limit, then the body, then the server. */
export function createMcpDoor({ identify, rateLimit, bodyLimit, serving }: McpDoorParts): DoorAt {
  const door = async (call: WireCall): Promise<void> => {
    const { line } = call;
    line.entered("rest");
    line.reached("mcp");
    requirePost(call);
    const caller = authenticate(call, identify, TAKES);
    line.authenticated(caller.name);
    call.limitTo(caller.agents);
    const counting = rateLimit(caller.tokenId, caller.rateLimit);
    if (counting instanceof Promise) await counting;
    requireJson(call.req);
    const raw = await readBody(call, bodyLimit());
    line.received(raw);
    const isLarge = raw.length > IN_STRETCHES_FROM;
    const message = requireMessage(isLarge ? await parseLargeText(textOf(raw)) : parseJson(raw));
    await (await serving()).serve(call, caller, message, raw);
  };
  return { prefix: MCP_PATH, exact: true, door, fail: failMcp };
}

/** The door while the surface is off. */
export const CLOSED_MCP: DoorAt = {
  prefix: MCP_PATH,
  exact: true,
  door(call) {
    call.line.reached("mcp");
    const words = "set gateway.mcp.enabled to true. It is served on the listeners that serve REST.";
    throw new GatewayError("not-found", `The MCP server is off here: ${words}`);
  },
  fail: failMcp,
};

/** Refuses GET and DELETE: the server has neither sessions nor streams outside of a call. Clients of 2025-11-25 try GET, and continue after a 405. */
function requirePost(call: WireCall): void {
  if (call.req.method !== "POST")
    throw new GatewayError("method-not-allowed", "This path takes POST.", { allow: "POST" });
}

function requireMessage(message: unknown): object {
  if (Array.isArray(message)) throw new GatewayError("invalid-request", "Send one message: batches are not supported.");
  if (typeof message !== "object" || message === null)
    throw new GatewayError("invalid-request", "The message must be a JSON object.");
  const { id } = message as { id?: unknown };
  if (typeof id === "string" && id.length > MOST_ID_CHARS)
    throw new GatewayError("invalid-request", `An \`id\` has at most ${MOST_ID_CHARS} characters.`);
  return message;
}
/** Subscriptions keep the id, and each answer repeats it. */
const MOST_ID_CHARS = 256;

function failMcp(call: WireCall, error: unknown): void {
  call.line.entered("rest");
  failCall(call, error, asMcpError(null));
}
