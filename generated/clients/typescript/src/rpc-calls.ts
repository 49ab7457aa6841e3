// Copied by "npm run generate" from scripts/generate/runtime/typescript/rpc-calls.ts; do not edit.
import type { RpcMethod, RpcMethods } from "./rpc-types.ts";
import { attempt } from "./attempts.ts";
import { jsonOf } from "./body.ts";
import { refuseUnknown } from "./call-options.ts";
import { fieldsOf, type GatewayError, notAGateway, responseError, rpcError } from "./error.ts";
import { type Exchange, type Page, pagesOf, Reply } from "./reply.ts";
import { isResponse, type RpcRequest, type RpcResponse, responseTo } from "./rpc-message.ts";
import type { CallOptions, Settings, StartOptions } from "./settings.ts";

/** The parts of a method that a call needs. */
export interface Method {
  isIdempotent?: boolean;
  /** The field with the items of a page. */
  items?: string;
}

/** One call of a batch: the method and its params. */
export type BatchCall = {
  [Name in RpcMethod]: readonly [method: Name, params?: RpcMethods[Name]["params"]];
}[RpcMethod];
/** The result or the error of one call of a batch. */
export type BatchResult<Call> = Call extends readonly [infer Name extends RpcMethod, ...unknown[]]
  ? { ok: true; result: RpcMethods[Name]["result"] } | { ok: false; error: GatewayError }
  : never;

/** The params, which are optional if none is required, and the options. */
type Given<Name extends RpcMethod> =
  Record<never, never> extends RpcMethods[Name]["params"]
    ? [params?: RpcMethods[Name]["params"], options?: StartOptions]
    : [params: RpcMethods[Name]["params"], options?: StartOptions];

/** Sends one message and returns the responses to its requests. Over HTTP it also returns the HTTP response. */
export type Send = (
  message: RpcRequest | RpcRequest[],
  operation: string,
  options: CallOptions,
  signal: AbortSignal,
) => Promise<{ responses: RpcResponse[]; response?: Response }>;

export interface RpcCalls {
  /** Makes a call without an answer. Its result is unknown. */
  notify<Name extends RpcMethod>(method: Name, ...given: Given<Name>): Promise<void>;
  /** Sends several calls as one message. Each call succeeds or fails separately. The results are in the order of the calls. */
  batch<const Calls extends readonly BatchCall[]>(
    calls: Calls,
    options?: CallOptions,
  ): Promise<{ -readonly [Index in keyof Calls]: BatchResult<Calls[Index]> }>;
}

let lastId = 0;
function requestOf(method: string, params: object): RpcRequest & { id: string } {
  lastId += 1;
  return { jsonrpc: "2.0", method, params, id: String(lastId) };
}

type Input = Record<string, unknown>;

/** The methods by noun and verb, `{ agent: { list } }`, and the calls for several methods. */
export function bindMethods(settings: Settings, methods: Record<string, Method>, send: Send) {
  /** The params with an idempotency key, if the method accepts one: the same for each attempt. */
  const withKey = (method: string, params: Input, key?: string): Input =>
    methods[method]?.isIdempotent ? { idempotencyKey: key ?? crypto.randomUUID(), ...params } : params;

  const exchange = (method: string, params: Input, options: StartOptions): Promise<Exchange<Input>> => {
    const operation = `rpc.${method}`;
    const keyed = withKey(method, params, options.idempotencyKey);
    const idempotencyKey = keyed.idempotencyKey as string | undefined;
    return attempt(settings, { operation, isRepeatable: true, idempotencyKey }, options, async (signal) => {
      const message = requestOf(method, keyed);
      const { responses, response } = await send(message, operation, options, signal);
      const { error, result } = responseTo(message.id, responses, operation, response?.status);
      if (error !== undefined) throw rpcError(error, operation, response?.status);
      return {
        data: fieldsOf(result, methods[method]?.items, response, operation),
        response: response as Response,
        requestId: response?.headers.get("x-request-id") ?? "",
      };
    });
  };
  const page = (method: string, items: string, params: Input, options: StartOptions): Page<Input, unknown> =>
    pagesOf(params, { items, next: "nextCursor", operation: `rpc.${method}` }, (query) =>
      exchange(method, query, options),
    );

  const nouns: Record<string, Record<string, unknown>> = {};
  for (const [name, { items }] of Object.entries(methods)) {
    const [noun = "", verb = ""] = name.split(".");
    nouns[noun] ??= {};
    nouns[noun][verb] = (params: Input = {}, options: StartOptions = {}) => {
      refuseUnknown(`rpc.${name}`, methods[name] ?? {}, undefined, options);
      return items === undefined ? new Reply(exchange(name, params, options)) : page(name, items, params, options);
    };
  }

  const notify = async (method: string, params: Input = {}, options: StartOptions = {}): Promise<void> => {
    const operation = `rpc.${method}`;
    refuseUnknown(operation, methods[method] ?? {}, undefined, options);
    const message: RpcRequest = { jsonrpc: "2.0", method, params: withKey(method, params, options.idempotencyKey) };
    return attempt(settings, { operation, isRepeatable: true }, options, async (signal) => {
      const { responses, response } = await send(message, operation, options, signal);
      const refusal = responses[0]?.error;
      if (refusal !== undefined) throw rpcError(refusal, operation, response?.status);
    });
  };
  const batch = async (calls: readonly BatchCall[], options: CallOptions = {}): Promise<unknown[]> => {
    refuseUnknown("rpc.batch", {}, undefined, options);
    if (calls.length === 0) return [];
    const keyed = calls.map(([method, params]) => [method, withKey(method, (params ?? {}) as Input)] as const);
    return attempt(settings, { operation: "rpc.batch", isRepeatable: true }, options, async (signal) => {
      const messages = keyed.map(([method, params]) => requestOf(method, params));
      const { responses, response } = await send(messages, "rpc.batch", options, signal);
      return messages.map(({ id, method }) => {
        const { error, result } = responseTo(id, responses, "rpc.batch", response?.status);
        return error === undefined ? { ok: true, result } : { ok: false, error: rpcError(error, `rpc.${method}`) };
      });
    });
  };
  return { ...nouns, notify, batch };
}

/** One POST for each message. */
export function sendByHttp(settings: Settings): Send {
  return async (message, operation, options, signal) => {
    const headers = {
      ...settings.headers,
      ...options.headers,
      authorization: `Bearer ${settings.tokenOf("rpc", operation)}`,
      "content-type": "application/json",
      accept: "application/json",
    };
    const init: RequestInit = { method: "POST", headers, body: JSON.stringify(message), signal, redirect: "manual" };
    const response = await settings.fetch(`${settings.url}/rpc`, init);
    if (response.status === 204) return { responses: [], response };
    if (!response.headers.get("content-type")?.startsWith("application/json"))
      throw response.ok ? notAGateway(response, operation) : await responseError(response, operation);
    const body = await jsonOf(response);
    const responses = Array.isArray(body) ? body : [body];
    if (!responses.every(isResponse)) throw notAGateway(response, operation);
    return { responses, response };
  };
}
