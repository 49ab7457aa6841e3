// Copied by "npm run generate" from scripts/generate/runtime/typescript/http.ts; do not edit.
import { attempt, pause } from "./attempts.ts";
import { jsonOf, stringOr, textOf } from "./body.ts";
import { refuseUnknown } from "./call-options.ts";
import { connectionError, fieldsOf, GatewayError, notAGateway, responseError } from "./error.ts";
import { type Exchange, pagesOf, Reply } from "./reply.ts";
import type { Settings, StartOptions, Token } from "./settings.ts";
import { TurnStream } from "./turn-stream.ts";

/** An operation of the contract, as the client calls it. */
export interface Operation {
  kind?: "empty" | "page" | "send" | "start" | "stream" | "text";
  /** By default GET. */
  method?: string;
  path: string;
  /** By default `rest`. */
  token?: Token;
  /** The arguments of a call before the options and after the values of the path. */
  input?: "body" | "query";
  isIdempotent?: boolean;
  /** By default true for GET and for calls with an idempotency key. */
  isRepeatable?: boolean;
  /** The field with the items of a page. */
  items?: string;
  /** The statuses of failures that have the same body as a success. */
  replyStatuses?: number[];
}

const NAMES = { rest: "REST key", rpc: "RPC token", webhook: "webhook token" };

type Input = Record<string, unknown>;
type Call = (...given: unknown[]) => unknown;

/** The calls by noun and verb: `{ chat: { send } }`. */
export function bindCalls(
  settings: Settings,
  operations: Record<string, Record<string, Operation>>,
): Record<string, Record<string, Call>> {
  return mapValues(operations, (verbs, noun) =>
    mapValues(verbs, (operation, verb) => bind(settings, operation, `${noun}.${verb}`)),
  );
}

function mapValues<From, To>(from: Record<string, From>, change: (value: From, key: string) => To): Record<string, To> {
  return Object.fromEntries(Object.entries(from).map(([key, value]) => [key, change(value, key)]));
}

function bind(settings: Settings, operation: Operation, name: string): Call {
  const { kind, path, input } = operation;
  const inPath = path.split("{").length - 1;
  return (...given) => {
    const values = given.slice(0, inPath).map((value) => String(value ?? ""));
    const sent = input && (given[inPath] as Input | undefined);
    const options = (given[inPath + (input ? 1 : 0)] ?? {}) as StartOptions;
    refuseUnknown(name, operation, input === "query" ? sent : undefined, options);
    // The event after which a stream starts is sent in a header.
    const isFollowing = kind === "stream" && input === "query";
    const request = requestOf(settings, operation, name, values, isFollowing ? undefined : sent, options);
    if (kind === "stream") return streamOf(request, operation, sent, options);
    if (kind === "send") return new Reply(untilEnded(request, settings, options));
    if (kind !== "page") return new Reply(request.exchange());
    return pagesOf(sent ?? {}, { items: operation.items as string, next: "next_cursor", operation: name }, (query) =>
      requestOf(settings, operation, name, values, query, options).exchange(),
    );
  };
}

/** Makes one logical call: all its attempts have the same idempotency key. */
function requestOf(
  settings: Settings,
  operation: Operation,
  name: string,
  values: string[],
  input: unknown,
  options: StartOptions,
) {
  const {
    method = "GET",
    token = "rest",
    isIdempotent,
    isRepeatable = isIdempotent ?? method === "GET",
    kind,
  } = operation;
  const idempotencyKey = isIdempotent ? (options.idempotencyKey ?? crypto.randomUUID()) : undefined;
  const url = urlOf(settings, operation, values, input as Input);
  const body = operation.input === "body" && input !== undefined ? JSON.stringify(bodyOf(operation, input)) : undefined;
  // Throws for an invalid header, which would otherwise look like a failed connection.
  new Headers({
    ...settings.headers,
    ...options.headers,
    ...(idempotencyKey && { "idempotency-key": idempotencyKey }),
  });

  /** Sends the request and returns the response as soon as it starts. */
  const send = (accept: string, extra: Record<string, string> = {}, signal?: AbortSignal): Promise<Response> => {
    const headers: Record<string, string> = { ...settings.headers, ...options.headers, accept, ...extra };
    if (token !== "none") headers.authorization = `Bearer ${settings.tokenOf(token, name)}`;
    if (body !== undefined) headers["content-type"] = "application/json";
    if (idempotencyKey !== undefined) headers["idempotency-key"] = idempotencyKey;
    return settings.fetch(url, {
      method,
      headers,
      redirect: "manual",
      ...(body === undefined ? {} : { body }),
      ...(signal ? { signal } : {}),
    });
  };
  const once = async <Result>(
    accept: string,
    extra: Record<string, string>,
    read: (response: Response) => Promise<Result>,
  ): Promise<Result> =>
    attempt(settings, { operation: name, isRepeatable, idempotencyKey }, options, async (signal) => {
      const response = await send(accept, extra, signal);
      if (!response.ok && !operation.replyStatuses?.includes(response.status))
        throw await responseError(response, name, NAMES[token as "rest"]);
      return read(response);
    });

  return {
    name,
    settings,
    idempotencyKey,
    /** The complete reply. */
    exchange: (): Promise<Exchange<never>> =>
      once(kind === "text" ? "*/*" : "application/json", {}, async (response) => ({
        data: (await dataOf(response, name, operation)) as never,
        response,
        requestId: response.headers.get("x-request-id") ?? "",
      })),
    /** The response with a stream of events. */
    open: (extra: Record<string, string>): Promise<Response> =>
      once("text/event-stream", extra, async (response) => {
        if (response.headers.get("content-type")?.startsWith("text/event-stream")) return response;
        await response.body?.cancel();
        throw notAGateway(response, name, "a stream of events");
      }),
    /** The error that ends a stream. */
    failure: (cause: unknown) => connectionError(cause, name, settings.url),
  };
}

export type HttpRequest = ReturnType<typeof requestOf>;

async function dataOf(response: Response, name: string, { kind, items }: Operation): Promise<unknown> {
  if (kind === "empty" && response.status === 204) return undefined;
  if (kind === "text") return textOf(response);
  if (response.status !== 204 && !response.headers.get("content-type")?.startsWith("application/json")) {
    await response.body?.cancel();
    throw notAGateway(response, name);
  }
  return fieldsOf(response.status === 204 ? undefined : await jsonOf(response), items, response, name);
}

const LONGEST_PAUSE_BETWEEN_ASKS_MS = 5_000;

/** The minimum time between the starts of two calls for the reply of one turn. The second call follows the first at once. */
function pauseBeforeAsking(asked: number): number {
  return asked === 0 ? 0 : Math.min(LONGEST_PAUSE_BETWEEN_ASKS_MS, 125 * 2 ** asked);
}

/**
 * Repeats a call until the turn has ended: after a 202, the same call with the same key continues to wait. If a server answers 202 without
 * waiting, growing pauses precede the calls; `timeoutMs` limits the sum of the pauses.
 */
async function untilEnded(
  request: HttpRequest,
  { timeoutMs }: Settings,
  { signal, timeoutMs: most = timeoutMs }: StartOptions,
): Promise<Exchange<never>> {
  let left = most;
  for (let asked = 0; ; asked += 1) {
    const begin = performance.now();
    const exchange = await request.exchange();
    if (exchange.response.status !== 202) return exchange;
    const ms = Math.max(0, pauseBeforeAsking(asked) - (performance.now() - begin));
    left -= ms;
    if (left < 0) throw unfinished(request, most, exchange.data);
    await pause(ms, signal);
  }
}

function unfinished(
  { name, idempotencyKey }: HttpRequest,
  ms: number,
  { turn_id }: { turn_id?: unknown },
): GatewayError {
  const error = new GatewayError("timeout", "Timeout", {
    operation: name,
    detail: `The turn has not ended within ${ms} ms. Read it with \`turns.get\`.`,
    turnId: stringOr(turn_id, undefined),
  });
  error.idempotencyKey = idempotencyKey;
  return error;
}

function bodyOf({ kind }: Operation, input: unknown): unknown {
  return kind === "start" || kind === "stream"
    ? { ...(input as Input), ...(kind === "start" ? { wait: false } : { stream: true }) }
    : input;
}

function urlOf(
  { url, webhookPath }: Settings,
  { path, input: place }: Operation,
  values: string[],
  input: Input,
): string {
  let next = 0;
  const filled = path
    .replace(/^\/hooks(?=\/|$)/, webhookPath)
    .replace(/\{\w+\}/g, () => segmentOf(values[next++] ?? ""));
  if (place !== "query") return url + filled;
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(input ?? {})) if (value !== undefined) query.set(name, String(value));
  return `${url}${filled}${query.size > 0 ? `?${query}` : ""}`;
}

/** A value as one segment of a path. An empty value, or one of dots, would make another path. */
function segmentOf(value: string): string {
  if (value === "" || value === "." || value === "..")
    throw new TypeError(`"${value}" cannot be a part of a path: pass an id or a name.`);
  return encodeURIComponent(value);
}

/** The events of a turn, by a POST that starts it or of an existing turn. */
function streamOf(request: HttpRequest, operation: Operation, input: unknown, options: StartOptions): TurnStream {
  const { settings, name } = request;
  if (operation.input !== "body")
    return new TurnStream(
      (from) => request.open(lastEvent(from?.after ?? (input as { after?: string } | undefined)?.after)),
      request.failure,
      options.signal,
    );
  const resumed: Operation = { path: "/api/v1/turns/{turn_id}/events" };
  return new TurnStream(
    (from) =>
      from === undefined
        ? request.open({})
        : requestOf(settings, resumed, name, [from.turnId], undefined, options).open(lastEvent(from.after)),
    request.failure,
    options.signal,
  );
}

function lastEvent(id: string | undefined): Record<string, string> {
  return id === undefined ? {} : { "last-event-id": id };
}
