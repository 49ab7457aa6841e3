import type { CallContext, Caller } from "#core/call.ts";
import { GatewayError } from "#kit/errors.ts";
import { didYouMean, insteadOf } from "#kit/fault-words.ts";
import { hashOf } from "#kit/secrets.ts";
import { IN_STRETCHES_FROM } from "#kit/utf8.ts";
import { yieldToOthers } from "#kit/yield.ts";
import type { Events } from "#observe/events.ts";
import type { Delivery, Turn } from "#store/store.ts";
import type { Outcome } from "#wire/call/access-line.ts";
import { parseLargeText, parseText } from "#wire/call/body.ts";
import { isIdempotencyKey } from "#wire/call/idempotency-key.ts";
import type { CountRequest } from "#wire/call/rate-limit.ts";
import {
  batchText,
  CallText,
  type Envelope,
  envelopeFault,
  failureText,
  idOf,
  resultText,
  shortened,
} from "./envelope.ts";

export type RpcCaller = Extract<Caller, { surface: "rpc" }>;

/** One received text, a call or a batch, with the facts of its transport. */
export type RpcExchange = {
  readonly caller: RpcCaller;
  readonly requestId: string;
  /** Aborts when the caller has closed the connection. Created when it is first read. */
  signal(): AbortSignal;
  /** The Idempotency-Key header. With a batch it is refused. */
  readonly idempotencyKey: string | undefined;
  /** Counted from the headers; the headers of the upgrade hold for all calls of a WebSocket. */
  readonly hops?: number;
  /** The address at which the caller reached RPC; the configured address if undefined. */
  servedAt?(): string;
  /** Absent on HTTP. On a WebSocket it gives the sender the end of its turn, and with `stream` the pieces of the reply. */
  readonly follow?: ((turn: Turn, options: { stream: boolean; replySeq?: number | undefined }) => void) | undefined;
  /** The request for the flight recorder. `entry` is the text of the call within a batch; otherwise it is the complete text. */
  delivery(operation: string, entry: string | undefined): Delivery;
  /** The dispatcher reports the operation and its outcome here. */
  readonly outcome: Readonly<Outcome>;
};

export type RpcMethodRow = {
  name: string;
  /** The permission that a token needs to call it; null where any will do. */
  permission: string | null;
  required: readonly string[];
  /** Its params may be a list. */
  positional?: boolean;
  idempotent?: boolean;
  changes?: boolean;
  /** The fault of the params, as a sentence; undefined when they have none. Fills in defaults. */
  check(params: object): string | undefined;
  /** The result, or a promise of it; throws the error of the call. */
  run(params: never, call: MethodCall): unknown;
};

export type RpcMethods = ReadonlyMap<string, RpcMethodRow>;

type RpcDispatchParts = {
  events: Pick<Events, "unexpectedError">;
  rateLimit?: CountRequest;
  /** JSON without the secrets of the configuration. */
  hideInJson: (json: string) => string;
};

/** The methods whose answers hide nothing: they return messages, replies and ids as stored. The others show records. */
const CONTENT: ReadonlySet<string> = new Set([
  "agent.sendMessage",
  "session.list",
  "session.get",
  "session.compact",
  "session.delete",
  "rpc.subscribe",
  "rpc.unsubscribe",
]);

/**
 * Answers a text with the text to send back, or with undefined if nothing is to be sent. It rejects only if the protocol has no answer: for an
 * idempotency key in the header of a batch. Calls start in the order of their arrival.
 */
export type RpcDispatch = (text: string, exchange: RpcExchange) => Promise<string | undefined>;

export const BATCH_LIMIT = 50;
/** Other callers are served after this many calls of a batch have begun, or after this long: fifty messages of 20 KB took 20 ms. */
const BEGUN_AT_ONCE = 8;
const MOST_MS = 5;

export function mayCall({ permissions }: RpcCaller, permission: string | null): boolean {
  return permission === null || permissions.includes("*") || permissions.includes(permission);
}

/** JSON-RPC 2.0, text in and text out. It knows no socket, and only the methods that it is given. */
export function createRpcDispatch(
  methods: RpcMethods,
  { events, rateLimit, hideInJson }: RpcDispatchParts,
): RpcDispatch {
  const fail = (thrown: unknown, { outcome, requestId }: RpcExchange, id: string | undefined): string | undefined => {
    const error = GatewayError.from(thrown);
    outcome.failed(error);
    if (error.name === "internal") events.unexpectedError({ error: error.cause ?? error, requestId });
    return id === undefined ? undefined : hideInJson(failureText(error, requestId, id));
  };

  const run = ({ method, params }: Envelope, exchange: RpcExchange, text: CallText, index: number): unknown => {
    const { outcome, caller } = exchange;
    const row = methods.get(method);
    if (row === undefined) throw unknownMethod(method, methods);
    if (index < 0) outcome.reached(row.name);
    if (row.changes === true) outcome.changed();
    if (!mayCall(caller, row.permission))
      throw new GatewayError("forbidden", `The token \`${caller.name}\` may not call ${row.name}.`);
    const given = params ?? {};
    checkParams(row, given);
    return row.run(given as never, new MethodCall(row, exchange, given, text, index));
  };

  /** Answers one call; `index` is its place in a batch, or -1. Never rejects. */
  const answerCall = async (
    message: unknown,
    exchange: RpcExchange,
    text: CallText,
    index: number,
  ): Promise<string | undefined> => {
    const fault = envelopeFault(message);
    const id = idOf(message, text, index);
    // A value that is not a call is not a notification either: it is always answered.
    if (fault !== undefined) return fail(new GatewayError("invalid-request", fault), exchange, id ?? "null");
    try {
      const { caller } = exchange;
      const counting = rateLimit?.(caller.tokenId, caller.rateLimit);
      if (counting instanceof Promise) await counting;
      const result = await run(message as Envelope, exchange, text, index);
      exchange.outcome.started((result as { turnId?: string } | null | undefined)?.turnId);
      if (id === undefined) return undefined;
      const answer = resultText(result, id);
      return CONTENT.has((message as Envelope).method) ? answer : hideInJson(answer);
    } catch (error) {
      return fail(error, exchange, id);
    }
  };

  const answerBatch = async (
    messages: readonly unknown[],
    exchange: RpcExchange,
    text: CallText,
    began: number,
  ): Promise<string | undefined> => {
    exchange.outcome.reached("batch");
    if (exchange.idempotencyKey !== undefined)
      throw new GatewayError("invalid-request", "Idempotency-Key is for a single call, not for a batch.");
    const fault = batchFault(messages.length);
    if (fault !== undefined) return fail(new GatewayError("invalid-request", fault), exchange, "null");
    const answers: Promise<string | undefined>[] = [];
    let since = began;
    for (const [index, message] of messages.entries()) {
      if ((index > 0 && index % BEGUN_AT_ONCE === 0) || performance.now() - since > MOST_MS) {
        await yieldToOthers();
        since = performance.now();
      }
      answers.push(answerCall(message, exchange, text, index));
    }
    return batchText(await Promise.all(answers));
  };

  const answer = (message: unknown, exchange: RpcExchange, text: string, began: number): Promise<string | undefined> =>
    Array.isArray(message)
      ? answerBatch(message, exchange, new CallText(text), began)
      : answerCall(message, exchange, new CallText(text), -1);

  const answerLarge = async (text: string, exchange: RpcExchange): Promise<string | undefined> => {
    const began = performance.now();
    let message: unknown;
    try {
      message = await parseLargeText(text);
    } catch (error) {
      return fail(error, exchange, "null");
    }
    return answer(message, exchange, text, began);
  };

  return (text, exchange) => {
    // Calls of one socket begin in their order. Calls over HTTP have no order, so a large one gives way to others.
    if (text.length > IN_STRETCHES_FROM && exchange.follow === undefined) return answerLarge(text, exchange);
    const began = performance.now();
    let message: unknown;
    try {
      message = parseText(text);
    } catch (error) {
      return Promise.resolve(fail(error, exchange, "null"));
    }
    return answer(message, exchange, text, began);
  };
}

function batchFault(length: number): string | undefined {
  if (length === 0) return "A batch has at least one call.";
  return length > BATCH_LIMIT ? `A batch has at most ${BATCH_LIMIT} calls.` : undefined;
}

function unknownMethod(method: string, methods: RpcMethods): GatewayError {
  if (method === "rpc.subscribe" || method === "rpc.unsubscribe")
    return new GatewayError("method-not-found", `\`${method}\` works only over the WebSocket at /rpc/ws.`);
  const hint = didYouMean(method, [...methods.keys()]) || " rpc.discover lists them.";
  return new GatewayError("method-not-found", `No method is named \`${shortened(method)}\`.${hint}`);
}

function checkParams(row: RpcMethodRow, params: object): void {
  if (Array.isArray(params) && row.positional !== true)
    throw new GatewayError("invalid-params", "Pass the params by name, in an object.");
  for (const name of row.required) {
    if ((params as Record<string, unknown>)[name] === undefined)
      throw new GatewayError("invalid-request", `\`${name}\` is required.${insteadOf(name, params)}`);
  }
  const fault = row.check(params);
  if (fault !== undefined) throw new GatewayError("invalid-params", fault);
}

/** The context of one call. A class, as a literal with a getter would be a dictionary. */
export class MethodCall implements CallContext {
  readonly exchange: RpcExchange;
  readonly #row: RpcMethodRow;
  readonly #params: object;
  readonly #text: CallText;
  readonly #index: number;

  /** `index` is its place in the batch in `text`; with -1 it is all of the text. */
  constructor(row: RpcMethodRow, exchange: RpcExchange, params: object, text: CallText, index: number) {
    this.exchange = exchange;
    this.#row = row;
    this.#params = params;
    this.#text = text;
    this.#index = index;
  }

  get caller(): RpcCaller {
    return this.exchange.caller;
  }

  get requestId(): string {
    return this.exchange.requestId;
  }

  get signal(): AbortSignal {
    return this.exchange.signal();
  }

  get hops(): number {
    return this.exchange.hops ?? 0;
  }

  get follow(): CallContext["follow"] {
    return this.exchange.follow;
  }

  get idempotency(): CallContext["idempotency"] {
    if (this.#row.idempotent !== true) return undefined;
    const { idempotencyKey: inHeader } = this.exchange;
    const { idempotencyKey: key = inHeader } = this.#params as { idempotencyKey?: string };
    if (key === undefined) return undefined;
    if (inHeader !== undefined) checkHeader(inHeader, key);
    return { key: `rpc\0${this.caller.tokenId}\0${this.#row.name}\0${key}`, hash: hashOfParams(this.#params) };
  }

  delivery(): Delivery {
    const entry = this.#index < 0 ? undefined : this.#text.entry(this.#index);
    return this.exchange.delivery(this.#row.name, entry);
  }
}

function checkHeader(inHeader: string, key: string): void {
  if (!isIdempotencyKey(inHeader))
    throw new GatewayError("invalid-params", "The header Idempotency-Key has 1 to 255 printable ASCII characters.");
  if (inHeader !== key)
    throw new GatewayError("invalid-params", "`idempotencyKey` is not the key of the header Idempotency-Key.");
}

/** Returns the same hash for the same params, whatever their order and the `idempotencyKey`. */
function hashOfParams(params: object): string {
  const pairs = Object.entries(params).filter(([name]) => name !== "idempotencyKey");
  pairs.sort(([a], [b]) => (a < b ? -1 : 1));
  return hashOf(JSON.stringify(pairs)).toString("base64url");
}
