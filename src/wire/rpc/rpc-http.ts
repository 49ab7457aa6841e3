import { isUtf8 } from "node:buffer";
import { GatewayError } from "#kit/errors.ts";
import { hopsIn } from "#kit/hops.ts";
import { IN_STRETCHES_FROM, textOfUtf8, utf8InStretches } from "#kit/utf8.ts";
import { authenticate } from "#wire/call/auth.ts";
import { parseText, readBody, requireJson } from "#wire/call/body.ts";
import { failCall, sendJsonText, type WireCall } from "#wire/call/call.ts";
import { createDelivery } from "#wire/call/delivery.ts";
import type { DoorAt } from "#wire/call/front.ts";
import { sendNothing, type Wording } from "#wire/call/problem.ts";
import { CallText, failureText, idOf } from "./envelope.ts";
import type { RpcCaller, RpcDispatch, RpcExchange } from "./rpc.ts";

type RpcHttpParts = {
  dispatch: RpcDispatch;
  /** The owner of the token with this hash; undefined for one that RPC does not know. */
  identify: (hash: Buffer) => RpcCaller | undefined;
  servedAt: (call: WireCall) => string;
  bodyLimit: () => number;
};

const PATH = "/rpc";
const TAKES = "`/rpc` takes an RPC token: `Authorization: Bearer <token>`.";
/** Only this much of a stranger's body is read, to echo the id. */
const STRANGER_LIMIT = 4096;

/** `POST /rpc`: authentication, then the body, then the dispatcher. The door's own refusals are JSON-RPC errors too. */
export function createRpcHttpDoor(parts: RpcHttpParts): DoorAt {
  const { dispatch, bodyLimit, identify } = parts;

  const door = async (call: WireCall): Promise<void> => {
    const { line } = call;
    line.entered("rpc");
    requirePost(call);
    let caller: RpcCaller;
    try {
      caller = authenticate(call, identify, TAKES);
    } catch (error) {
      failCall(call, error, asFailure(await idOfStranger(call)));
      return;
    }
    line.authenticated(caller.name);
    requireJson(call.req);
    const raw = await readBody(call, bodyLimit());
    line.received(raw);
    if (!isUtf8(raw)) {
      const error = new GatewayError("parse-error", "The body is not UTF-8.");
      line.failed(error);
      return sendJsonText(call, 200, failureText(error, call.requestId, "null"));
    }
    const text = textOfUtf8(raw);
    const answer = await dispatch(text, new HttpExchange(parts, call, caller, raw));
    if (answer === undefined) sendNothing(call.res, 204, call.requestId);
    else await sendJsonText(call, 200, answer.length > IN_STRETCHES_FROM ? await utf8InStretches(answer) : answer);
  };

  return { prefix: PATH, door, fail: failRpc };
}

export function failRpc(call: WireCall, error: unknown): void {
  call.line.entered("rpc");
  failCall(call, error, asFailure("null"));
}

function requirePost(call: WireCall): void {
  if (call.path !== PATH) throw call.nothingThere();
  if (call.req.method !== "POST")
    throw new GatewayError("method-not-allowed", "This path takes POST.", { allow: "POST" });
}

/** The id of a refused call, as JSON; null if it is not in a small body that has already arrived. */
async function idOfStranger(call: WireCall): Promise<string> {
  // A caller that waits to be asked for the body is not asked.
  if (call.req.headers.expect !== undefined) return "null";
  try {
    const text = (await readBody(call, STRANGER_LIMIT)).toString("utf8");
    return idOf(parseText(text), new CallText(text), -1) ?? "null";
  } catch {
    return "null";
  }
}

function asFailure(id: string): Wording {
  return (error, requestId) => ({ type: "application/json", body: failureText(error, requestId, id) });
}

/** One body's exchange with the dispatcher. The outcome goes to the access line, also when the caller has left by then. */
class HttpExchange implements RpcExchange {
  readonly caller: RpcCaller;
  readonly outcome: RpcExchange["outcome"];
  readonly follow = undefined;
  readonly #call: WireCall;
  readonly #parts: RpcHttpParts;
  readonly #raw: Buffer;

  constructor(parts: RpcHttpParts, call: WireCall, caller: RpcCaller, raw: Buffer) {
    this.caller = caller;
    this.outcome = call.line;
    this.#call = call;
    this.#parts = parts;
    this.#raw = raw;
  }

  get requestId(): string {
    return this.#call.requestId;
  }

  get idempotencyKey(): string | undefined {
    return this.#call.req.headers["idempotency-key"] as string | undefined;
  }

  get hops(): number {
    return hopsIn(this.#call.req.headers);
  }

  signal(): AbortSignal {
    return this.#call.signal;
  }

  servedAt(): string {
    return this.#parts.servedAt(this.#call);
  }

  delivery(operation: string, entry: string | undefined): ReturnType<RpcExchange["delivery"]> {
    const body = entry === undefined ? this.#raw : Buffer.from(entry);
    return createDelivery(this.#call, this.caller.name, body, operation);
  }
}
