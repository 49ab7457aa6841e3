import type { CallContext } from "#core/call.ts";
import type { McpCall, McpTools, RestCaller } from "#core/mcp-tools.ts";
import { HOPS_KEY, hopsIn, hopsOf } from "#kit/hops.ts";
import { hashOf } from "#kit/secrets.ts";
import type { Delivery } from "#store/store.ts";
import type { WireCall } from "#wire/call/call.ts";
import { createDelivery } from "#wire/call/delivery.ts";
import { idempotencyKeyIn } from "#wire/call/idempotency-key.ts";

/** The parts that the calls of tools share. */
export type ToolParts = {
  tools: McpTools;
  /** The longest time that a call waits for its turn. */
  waitMs: number;
  /** The longest time that a call waits before its answer is a task. */
  taskAfterMs: number;
  /** The time for which an ended turn is stored. */
  retentionMs: () => number;
};

/** One message of a caller, until it is answered. `isReported`: its outcome is in the access line. */
export type McpRequest = { call: WireCall; caller: RestCaller; method: unknown; raw: Buffer; isReported: boolean };

type ToolRequest = {
  name: string;
  args: unknown;
  meta: unknown;
  /** Aborts when the stream of the answer has ended. */
  signal: AbortSignal;
  waitMs: number;
  progress?: McpCall["progress"];
};

/** The context of a tool's call. */
export class ToolCall implements McpCall {
  readonly caller: RestCaller;
  readonly requestId: string;
  readonly hops: number;
  readonly idempotency: CallContext["idempotency"];
  readonly waitMs: number;
  readonly progress: McpCall["progress"];
  /** Aborts when the caller disconnects, its stream has ended, or it must wait no longer. */
  readonly signal: AbortSignal;
  readonly #request: McpRequest;

  constructor(request: McpRequest, { name, args, meta, signal, waitMs, progress }: ToolRequest) {
    const { call, caller } = request;
    const key = idempotencyKeyIn(call.req.headers);
    this.caller = caller;
    this.requestId = call.requestId;
    this.hops = Math.max(hopsIn(call.req.headers), hopsInMeta(meta));
    this.idempotency =
      key === undefined ? undefined : { key: `rest\0${caller.tokenId}\0mcp.${name}\0${key}`, hash: hashOfArgs(args) };
    this.waitMs = waitMs;
    this.progress = progress;
    this.signal = AbortSignal.any([call.signal, signal]);
    this.#request = request;
  }

  /** Marks the answer, as REST does, unless it is a stream that has begun. */
  replayed(): void {
    const { res } = this.#request.call;
    if (!res.headersSent) res.setHeader("idempotent-replayed", "true");
  }

  delivery(): Delivery {
    const { call, caller, raw } = this.#request;
    return createDelivery(call, caller.name, raw);
  }
}

/** An invalid number counts as the maximum. */
function hopsInMeta(meta: unknown): number {
  const hops = (meta as Record<string, unknown> | undefined)?.[HOPS_KEY];
  return hops === undefined ? 0 : hopsOf(String(hops));
}

/** A repeated message has an id of its own, so only the arguments count. */
function hashOfArgs(args: unknown): string {
  return hashOf(JSON.stringify(args ?? {})).toString("base64url");
}
