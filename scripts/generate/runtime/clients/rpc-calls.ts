import type { RpcMethods } from "#generated/rpc-types.ts";
import { ConnectionError } from "./connection-error.ts";
import { RpcError } from "./rpc-error.ts";
import type { RpcRequest, RpcResponse, RpcTransport } from "./rpc-transport.ts";

export interface CallOptions {
  /** Gives up waiting. What was sent may be done all the same. */
  signal?: AbortSignal;
}

type Sent<Method extends keyof RpcMethods> = RpcMethods[Method]["sent"];
type Result<Method extends keyof RpcMethods> = RpcMethods[Method]["result"];
/** The params, which may be left out where none is required. */
type Params<Method extends keyof RpcMethods> =
  Record<never, never> extends Sent<Method> ? [params?: Sent<Method>] : [params: Sent<Method>];
type WithOptions<Method extends keyof RpcMethods> =
  Record<never, never> extends Sent<Method>
    ? [params?: Sent<Method>, options?: CallOptions]
    : [params: Sent<Method>, options?: CallOptions];

export type BatchCall = { [Method in keyof RpcMethods]: [method: Method, ...params: Params<Method>] }[keyof RpcMethods];
export type BatchResult<Call> = Call extends readonly [infer Method extends keyof RpcMethods, ...unknown[]]
  ? { ok: true; result: Result<Method> } | { ok: false; error: RpcError }
  : never;

export interface Calls {
  /** Calls a method. Throws an RpcError if the gateway refuses or fails, a ConnectionError if no answer comes. */
  call<Method extends keyof RpcMethods>(method: Method, ...rest: WithOptions<Method>): Promise<Result<Method>>;
  /** Calls a method without asking for an answer: nobody learns whether it was done. */
  notify<Method extends keyof RpcMethods>(method: Method, ...params: Params<Method>): Promise<void>;
  /** Sends several calls as one message. Each succeeds or fails alone; the results are in the order of the calls. */
  batch<const Batch extends readonly BatchCall[]>(
    calls: Batch,
    options?: CallOptions,
  ): Promise<{ -readonly [Index in keyof Batch]: BatchResult<Batch[Index]> }>;
}

/** Params by name and typed results over any transport. */
export function createCalls(transport: RpcTransport, timeoutMs: number): Calls {
  let last = 0;
  const request = (method: string, params: object = {}): RpcRequest & { id: string } => {
    last += 1;
    return { jsonrpc: "2.0", method, params, id: String(last) };
  };
  const send = async (message: RpcRequest | RpcRequest[], signal?: AbortSignal) => {
    const timeout = AbortSignal.timeout(timeoutMs);
    try {
      return await transport.send(message, signal === undefined ? timeout : AbortSignal.any([signal, timeout]));
    } catch (error) {
      if (!timeout.aborted || signal?.aborted) throw error;
      throw new ConnectionError(`no answer within ${timeoutMs} ms`, { cause: error });
    }
  };

  const call = async (method: string, params?: object, { signal }: CallOptions = {}): Promise<unknown> => {
    const message = request(method, params);
    const response = responseTo(message.id, await send(message, signal));
    if (response.error !== undefined) throw new RpcError(response.error);
    return response.result;
  };
  const notify = async (method: string, params: object = {}): Promise<void> => {
    const refusal = (await send({ jsonrpc: "2.0", method, params }))[0];
    if (refusal?.error !== undefined) throw new RpcError(refusal.error);
  };
  const batch = async (calls: readonly BatchCall[], { signal }: CallOptions = {}): Promise<unknown[]> => {
    if (calls.length === 0) return [];
    const messages = calls.map(([method, params]) => request(method, params));
    const responses = await send(messages, signal);
    return messages.map(({ id }) => {
      const { error, result } = responseTo(id, responses);
      return error === undefined ? { ok: true, result } : { ok: false, error: new RpcError(error) };
    });
  };
  return { call, notify, batch } as Calls;
}

/** The response to one request; a refusal of the whole message is an error of its own. */
function responseTo(id: string, responses: RpcResponse[]): RpcResponse {
  const response = responses.find((candidate) => candidate.id === id);
  if (response !== undefined) return response;
  const refusal = responses.find((candidate) => candidate.id === null);
  if (refusal?.error !== undefined) throw new RpcError(refusal.error);
  throw new ConnectionError(`no response has the id ${id}`);
}
