import { setImmediate as breathe } from "node:timers/promises";
import type { Caller } from "#core/call.ts";
import { GatewayError } from "#kit/errors.ts";
import { didYouMean, insteadOf } from "#kit/fault-words.ts";
import { IN_STRETCHES_FROM } from "#kit/utf8.ts";
import type { Events } from "#observe/events.ts";
import type { Delivery, Turn } from "#store/store.ts";
import { parseLargeText, parseText } from "#wire/call/body.ts";
import type { CountRequest } from "#wire/call/shared-rate-limit.ts";
import { CallText } from "./call-text.ts";
import { batchText, failureText, resultText } from "./rpc-answer.ts";
import { RpcCall } from "./rpc-call.ts";
import { type Envelope, envelopeFault, idOf, shortened } from "./rpc-envelope.ts";

export type RpcCaller = Extract<Caller, { surface: "rpc" }>;

/** What surrounds one text that came in, be it a call or a batch; a door makes one for each. */
export type RpcExchange = {
  readonly caller: RpcCaller;
  readonly requestId: string;
  /** Aborts when the caller has gone. Made when somebody asks. */
  readonly signal: AbortSignal;
  /** The Idempotency-Key header. With a batch it is refused. */
  readonly idempotencyKey: string | undefined;
  /** What the headers say of it; of a WebSocket those of its upgrade, for all its calls. */
  readonly hops?: number;
  /** Where the caller finds RPC, as it came here itself; without it, at the configured address. */
  readonly servedAt?: string;
  /** Absent on HTTP. On a WebSocket it gives the sender the end of its turn, and with `stream` the pieces of the reply. */
  readonly follow?: ((turn: Turn, options: { stream: boolean; replySeq?: number | undefined }) => void) | undefined;
  /** The request as the flight recorder keeps it. `entry` is the text of the call within a batch; else it is all that came. */
  delivery(operation: string, entry: string | undefined): Delivery;

  // For the access line. A door begins with `unknown`, undefined, undefined and false; the dispatcher fills them in.
  /** The method, `batch`, or `unknown`; never what the caller wrote. */
  operation: string;
  /** The name of the first error that was answered. */
  error: string | undefined;
  /** What more that said. */
  reason: string | undefined;
  /** The first turn that was started. */
  turnId: string | undefined;
  /** Some call in it starts or changes something. */
  changes: boolean;
};

/** One method, as the dispatcher knows it. */
export type RpcMethodRow = {
  name: string;
  /** What a token needs to call it; null where any will do. */
  permission: string | null;
  required: readonly string[];
  /** Its params may be a list. */
  positional?: boolean;
  /** Takes an idempotency key. */
  idempotent?: boolean;
  /** It starts or changes something, and does not only read. */
  changes?: boolean;
  /** What is wrong with the params, as a sentence; undefined when nothing is. Fills in defaults. */
  check(params: object): string | undefined;
  /** The result, or a promise of it; throws what becomes the error. */
  run(params: never, call: RpcCall): unknown;
};

export type RpcMethods = ReadonlyMap<string, RpcMethodRow>;

export type RpcDispatchParts = {
  events: Pick<Events, "unexpectedError">;
  /** By the token. */
  rateLimit?: CountRequest;
};

/**
 * Answers a text with the text to send back, or with undefined when nothing is to be sent; synchronous where every call in it is. It
 * throws only what is no answer of the protocol: the refusal of an idempotency key that came with a batch.
 */
export type RpcDispatch = (text: string, exchange: RpcExchange) => Answer | Promise<Answer>;
type Answer = string | undefined;

export const BATCH_LIMIT = 50;
/** So many calls of a batch are begun, or for so long it is worked on, before others are heard again: fifty messages of 20 KB took 20 ms. */
const BEGUN_AT_ONCE = 8;
const SLICE_MS = 5;

type Batch = {
  messages: readonly unknown[];
  exchange: RpcExchange;
  text: CallText;
  answers: (Answer | Promise<Answer>)[];
};

export const mayCall = ({ permissions }: RpcCaller, permission: string | null): boolean =>
  permission === null || permissions.includes("*") || permissions.includes(permission);

/** JSON-RPC 2.0, text in and text out. It knows no socket, and no method but those it is given. */
export const createRpcDispatch = (methods: RpcMethods, parts: RpcDispatchParts): RpcDispatch => {
  const { events, rateLimit } = parts;

  const fail = (thrown: unknown, exchange: RpcExchange, id: string | undefined): Answer => {
    const error = GatewayError.from(thrown);
    const { requestId } = exchange;
    if (exchange.error === undefined) exchange.reason = error.detail;
    exchange.error ??= error.name;
    exchange.turnId ??= error.extra.turnId;
    if (error.name === "internal") events.unexpectedError({ error: error.cause ?? error, requestId });
    return id === undefined ? undefined : failureText(error, requestId, id);
  };

  const succeed = (result: unknown, exchange: RpcExchange, id: string | undefined): Answer => {
    exchange.turnId ??= (result as { turnId?: string } | null | undefined)?.turnId;
    return id === undefined ? undefined : resultText(result, id);
  };

  const settle = async (running: Promise<unknown>, exchange: RpcExchange, id: string | undefined): Promise<Answer> => {
    try {
      return succeed(await running, exchange, id);
    } catch (error) {
      return fail(error, exchange, id);
    }
  };

  const begin = (
    { method, params }: Envelope,
    exchange: RpcExchange,
    text: CallText,
    index: number,
    id: string | undefined,
  ): Answer | Promise<Answer> => {
    const row = methods.get(method);
    if (row === undefined) throw unknownMethod(method, methods);
    if (index < 0) exchange.operation = row.name;
    if (row.changes === true) exchange.changes = true;
    if (!mayCall(exchange.caller, row.permission)) throw forbidden(exchange.caller, row);
    const given = params ?? {};
    checkParams(row, given);
    const call = new RpcCall(row, exchange, given, text, index);
    const running = row.run(given as never, call);
    return running instanceof Promise ? settle(running, exchange, id) : succeed(running, exchange, id);
  };

  const beginCounted = async (counting: Promise<unknown>, ...call: Parameters<typeof begin>): Promise<Answer> => {
    try {
      await counting;
      return await begin(...call);
    } catch (error) {
      return fail(error, call[1], call[4]);
    }
  };

  /** One call, that came alone or as number `index` of a batch; -1 is alone. */
  const answer = (message: unknown, exchange: RpcExchange, text: CallText, index: number): Answer | Promise<Answer> => {
    const fault = envelopeFault(message);
    const id = idOf(message, text, index);
    // What is no call is no notification either: it is always answered.
    if (fault !== undefined) return fail(new GatewayError("invalid-request", fault), exchange, id ?? "null");
    try {
      const counting = rateLimit?.(exchange.caller.tokenId);
      if (counting instanceof Promise) return beginCounted(counting, message as Envelope, exchange, text, index, id);
      return begin(message as Envelope, exchange, text, index, id);
    } catch (error) {
      return fail(error, exchange, id);
    }
  };

  const answerBatch = (
    messages: readonly unknown[],
    exchange: RpcExchange,
    text: CallText,
    began = performance.now(),
  ): Answer | Promise<Answer> => {
    exchange.operation = "batch";
    if (exchange.idempotencyKey !== undefined)
      throw new GatewayError("invalid-request", "Idempotency-Key goes with one call, not with a batch.");
    const fault = batchFault(messages.length);
    if (fault !== undefined) return fail(new GatewayError("invalid-request", fault), exchange, "null");
    return answerFrom({ messages, exchange, text, answers: [] }, began);
  };

  /**
   * Goes on with a batch. What its calls begin runs at once or when this has returned, so after some of them, and after a while, it lets
   * others have their turn.
   */
  const answerFrom = (batch: Batch, began: number): Answer | Promise<Answer> => {
    const { messages, exchange, text, answers } = batch;
    for (let begun = 0; answers.length < messages.length; ) {
      if (begun === BEGUN_AT_ONCE || performance.now() - began > SLICE_MS)
        return breathe().then(() => answerFrom(batch, performance.now()));
      const index = answers.length;
      const one = answer(messages[index], exchange, text, index);
      if (one instanceof Promise) begun++;
      answers.push(one);
    }
    return answers.some(isPromise) ? Promise.all(answers).then(batchText) : batchText(answers as Answer[]);
  };

  const answerParsed = (
    message: unknown,
    text: string,
    exchange: RpcExchange,
    began: number | undefined,
  ): Answer | Promise<Answer> => {
    const source = new CallText(text);
    return Array.isArray(message)
      ? answerBatch(message, exchange, source, began)
      : answer(message, exchange, source, -1);
  };

  const answerLarge = async (text: string, exchange: RpcExchange): Promise<Answer> => {
    let message: unknown;
    try {
      message = await parseLargeText(text);
    } catch (error) {
      return fail(error, exchange, "null");
    }
    return await answerParsed(message, text, exchange, undefined);
  };

  return (text, exchange) => {
    const isLarge = text.length > IN_STRETCHES_FROM;
    // Calls that come over one socket are begun in their order; those of HTTP have none.
    if (isLarge && exchange.follow === undefined) return answerLarge(text, exchange);
    const began = isLarge ? performance.now() : undefined;
    let message: unknown;
    try {
      message = parseText(text);
    } catch (error) {
      return fail(error, exchange, "null");
    }
    return answerParsed(message, text, exchange, began);
  };
};

const isPromise = (answer: Answer | Promise<Answer>): boolean => answer instanceof Promise;

const batchFault = (length: number): string | undefined => {
  if (length === 0) return "A batch holds a call at least.";
  return length > BATCH_LIMIT ? `A batch holds at most ${BATCH_LIMIT} calls.` : undefined;
};

const unknownMethod = (method: string, methods: RpcMethods): GatewayError => {
  if (method === "rpc.subscribe" || method === "rpc.unsubscribe")
    return new GatewayError("method-not-found", `\`${method}\` goes over the WebSocket at /rpc/ws alone.`);
  const hint = didYouMean(method, [...methods.keys()]) || " rpc.discover lists them.";
  return new GatewayError("method-not-found", `No method is named \`${shortened(method)}\`.${hint}`);
};

const forbidden = ({ name }: RpcCaller, row: RpcMethodRow): GatewayError =>
  new GatewayError("forbidden", `The token \`${name}\` may not call ${row.name}.`);

const checkParams = (row: RpcMethodRow, params: object): void => {
  if (Array.isArray(params) && row.positional !== true)
    throw new GatewayError("invalid-params", "The params go by name, in an object.");
  for (const name of row.required) {
    if ((params as Record<string, unknown>)[name] === undefined)
      throw new GatewayError("invalid-request", `\`${name}\` is required.${insteadOf(name, params)}`);
  }
  const fault = row.check(params);
  if (fault !== undefined) throw new GatewayError("invalid-params", fault);
};
