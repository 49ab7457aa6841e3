import type { CallContext, Caller } from "#core/call.ts";
import type { OpenAiHandlers } from "#generated/openai-handlers.ts";
import type { RestHandlers } from "#generated/rest-handlers.ts";
import { returnsContent } from "#kit/content-operations.ts";
import { GatewayError } from "#kit/errors.ts";
import { hopsIn } from "#kit/hops.ts";
import { hashOf } from "#kit/secrets.ts";
import { IN_STRETCHES_FROM, utf8InStretches } from "#kit/utf8.ts";
import { yieldToOthers } from "#kit/yield.ts";
import type { Delivery } from "#store/store.ts";
import { authenticate, bearerOf } from "#wire/call/auth.ts";
import { parseJson, parseLargeText, readBody, requireJson, textOf } from "#wire/call/body.ts";
import { failCall, type SendLate, sendJsonText, type WireCall } from "#wire/call/call.ts";
import { createDelivery } from "#wire/call/delivery.ts";
import { idempotencyKeyIn } from "#wire/call/idempotency-key.ts";
import { sendNothing, type Wording } from "#wire/call/problem.ts";
import type { CountRequest } from "#wire/call/rate-limit.ts";
import { createMatcher, type Match, placeOfStranger, type Route } from "#wire/call/routes.ts";
import { EventStream, type Framing } from "#wire/call/sse.ts";
import type { ValidateRequest } from "./rest-validation.ts";

type RestCaller = Extract<Caller, { surface: "rest" }>;
/** A caller that REST authenticates. A caller with an RPC token may make only the calls that need the lowest scope. */
export type RestDoorCaller = RestCaller | Extract<Caller, { surface: "rpc" }>;

/** The parts that a door writes in its own way: events, and errors before and in an answer. */
export type Style = {
  framing: Framing;
  wording: Wording;
  sendLate: SendLate;
};

export type RestDoorParts = {
  surface: "rest" | "openai";
  handlers: RestHandlers<CallContext> | OpenAiHandlers<CallContext>;
  style?: Style;
  validate: ValidateRequest;
  /** The owner of the token with this hash; undefined for one that the door does not know. */
  identify: (hash: Buffer) => RestDoorCaller | undefined;
  /** A sentence about the token that the door takes, where that is not a key. */
  takes?: string;
  rateLimit: CountRequest;
  bodyLimit: () => number;
};

/** The door of REST, or another that takes its keys: authentication, then scope, then the body, then the contract, then the handler. */
export function createRestDoor(parts: RestDoorParts) {
  const { surface, validate, identify, rateLimit, bodyLimit } = parts;
  const handlers = parts.handlers as unknown as Readonly<Record<string, Handler>>;
  const match = createMatcher(surface);
  const takes = parts.takes ?? `\`${BELOW[surface]}\` takes a REST key: \`Authorization: Bearer <key>\`.`;

  return async (call: WireCall): Promise<void> => {
    const { req, line } = call;
    line.entered("rest");
    const caller = authenticate(call, identify, takes, WITH_KNOWN_PATH);
    line.authenticated(caller.name);
    call.limitTo(caller.agents);
    const matched = match(req.method ?? "", call.path);
    if (!matched) throw call.nothingThere();
    line.reached(matched.route.operation);
    requireScope(matched.route, caller);
    const counting = rateLimit(caller.tokenId, caller.rateLimit);
    if (counting instanceof Promise) await counting;
    const raw = await readRaw(call, matched.route, bodyLimit());
    line.received(raw);
    const isLarge = raw !== undefined && raw.length > IN_STRETCHES_FROM;
    const parsed = isLarge ? await parseLargeText(textOf(raw)) : raw ? parseJson(raw) : bodyOfNone(matched.route);
    const { body, query } = await validate(req, parsed, matched.route);
    // The handler's work is a stretch of its own.
    if (isLarge) await yieldToOthers();
    const headers = {
      "idempotency-key": req.headers["idempotency-key"],
      "last-event-id": req.headers["last-event-id"],
    };
    const handler = handlers[matched.route.operation] as Handler;
    const context = new RestCall(call, caller, matched.route, raw);
    const reply = await handler({ path: matched.params, query, headers, body }, context);
    line.succeeded();
    // The answer is also sent in a separate turn of the event loop, because it may repeat a large request.
    if (isLarge) await yieldToOthers();
    const sending = answer(call, matched, reply, parts.style);
    if (sending) await sending;
  };
}

/** The caller's own path could hold a secret. */
const WITH_KNOWN_PATH = { shownPath: ({ req, path }: WireCall) => placeOfStranger(req.method, path).path };

type Handler = (call: unknown, ctx: CallContext) => Promise<unknown>;

const BELOW = { rest: "/api/v1", openai: "/v1" } as const;

function requireScope({ scope }: Route, caller: RestDoorCaller): void {
  const scopes = caller.surface === "rest" ? caller.scopes : [];
  if (scopes.includes("console")) return;
  if (scope === "console") throw new GatewayError("forbidden", "Only the console token can create and revoke keys.");
  if (scope === "admin" && !scopes.includes("admin"))
    throw new GatewayError("forbidden", "The key lacks the scope admin.");
}

/** The body of the request, undefined where it has none. An operation that takes none refuses one. */
function readRaw(call: WireCall, route: Route, limit: number): Promise<Buffer | undefined> {
  if (route.bodyLimit === null) return readNothing(call, route);
  if (!route.needsBody) return readIfThere(call, limit);
  requireJson(call.req);
  return readBody(call, limit);
}

function bodyOfNone({ bodyLimit }: Route): object | undefined {
  return bodyLimit === null ? undefined : {};
}

async function readIfThere(call: WireCall, limit: number): Promise<Buffer | undefined> {
  const raw = await readBody(call, limit);
  if (raw.length <= NOTHING_LIMIT && NOTHING.test(raw.toString("latin1"))) return undefined;
  requireJson(call.req);
  return raw;
}

/** Many clients send an empty object with each POST: it says nothing, and is taken as nothing. */
async function readNothing(call: WireCall, { method }: Route): Promise<undefined> {
  const raw = await readBody(call, method === "POST" ? NOTHING_LIMIT : 0).catch(refuseBody);
  if (!NOTHING.test(raw.toString("latin1"))) throw noBodyTaken();
}
const NOTHING = /^\s*(\{\s*\})?\s*$/;
const NOTHING_LIMIT = 64;

function refuseBody(error: GatewayError): never {
  throw error.name === "too-large" ? noBodyTaken() : error;
}

function noBodyTaken(): GatewayError {
  const errors = [{ pointer: "", message: "is not allowed" }];
  return new GatewayError("invalid-request", "This call does not take a body.", { errors });
}

/** The context of one call. A class, as a literal with a getter would be a dictionary. */
class RestCall implements CallContext {
  readonly caller: RestDoorCaller;
  readonly requestId: string;
  readonly hops: number;
  readonly idempotency: CallContext["idempotency"];
  readonly #call: WireCall;
  readonly #body: Buffer | undefined;

  constructor(call: WireCall, caller: RestDoorCaller, route: Route, body: Buffer | undefined) {
    const key = route.idempotent ? idempotencyKeyIn(call.req.headers) : undefined;
    this.caller = caller;
    this.requestId = call.requestId;
    this.hops = hopsIn(call.req.headers);
    this.idempotency =
      key !== undefined
        ? { key: `rest\0${caller.tokenId}\0${route.operation}\0${key}`, hash: hashOfBody(body) }
        : undefined;
    this.#call = call;
    this.#body = body;
  }

  get bearer(): string | undefined {
    return bearerOf(this.#call.req);
  }

  get signal(): AbortSignal {
    return this.#call.signal;
  }

  delivery(): Delivery {
    return createDelivery(this.#call, this.caller.name, this.#body);
  }
}

function hashOfBody(raw: Buffer | undefined): string {
  return hashOf(raw ?? "").toString("base64url");
}

type Tagged = { as: string; body: unknown; replayed?: boolean };

/** Sends a handler's answer, with the status from the contract. Returns a promise only for a large answer. */
function answer(call: WireCall, { route }: Match, reply: unknown, style?: Style): void | Promise<void> {
  const tagged = isTagged(reply) ? reply : undefined;
  const { turn_id: turnId } = (tagged?.body ?? {}) as { turn_id?: string };
  call.line.started(turnId);
  const headers = tagged?.replayed === true ? { "idempotent-replayed": "true" } : undefined;
  if (tagged?.as === "events") {
    const sent = { "x-request-id": call.requestId, ...headers };
    const fail = (error: unknown) => failCall(call, error, style?.wording, style?.sendLate);
    const events = tagged.body as AsyncIterable<unknown>;
    call.answerWith(new EventStream(call.res, sent, events, fail, style?.framing));
    return undefined;
  }
  const { status } = replyOf(route, tagged?.as);
  if (reply === undefined) {
    sendNothing(call.res, status, call.requestId);
    return undefined;
  }
  const whole = JSON.stringify(tagged ? tagged.body : reply);
  const text = returnsContent(route.operation) ? whole : call.parts.hideInJson(whole);
  if (text.length > IN_STRETCHES_FROM)
    return utf8InStretches(text).then((bytes) => sendJsonText(call, status, bytes, headers));
  return sendJsonText(call, status, text, headers);
}

/** The reply of the contract that a handler chose: by its name, or the only one there is. */
function replyOf({ replies }: Route, as: string | undefined): { status: number } {
  const named = as === undefined ? undefined : replies[as];
  return named ?? (Object.values(replies)[0] as { status: number });
}

function isTagged(reply: unknown): reply is Tagged {
  return typeof reply === "object" && reply !== null && "as" in reply && "body" in reply;
}
