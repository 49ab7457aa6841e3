// Copied by "npm run generate" from scripts/generate/runtime/clients/rpc-socket.ts; do not edit.
import type { Push, Subscribed } from "../push-types.ts";
import { ConnectionError } from "./connection-error.ts";
import { createPushQueue, type PushQueue } from "./push-queue.ts";
import { RpcError } from "./rpc-error.ts";
import { isResponse, type RpcRequest, type RpcResponse, type RpcTransport } from "./rpc-transport.ts";
import { createConnection, protocolsFor, type Reconnect, type SocketClass, type SocketLike } from "./socket.ts";
import { createSubscriptions, type Subscribe, type Unsubscribe } from "./subscriptions.ts";

export interface PushOptions {
  signal?: AbortSignal;
}

/** The calls that only a WebSocket has. */
export interface SocketCalls {
  /** Begins or goes on with streams. The client remembers them, and how far each has come, over lost connections. */
  subscribe(request: Subscribe): Promise<void>;
  unsubscribe(request: Unsubscribe): Promise<void>;
  /**
   * Every push from now on, to each reader. A lost connection is opened again and its subscriptions go on where they
   * were; if it does not come back, the reader gets a ConnectionError.
   */
  pushes(options?: PushOptions): AsyncIterableIterator<Push>;
  close(): void;
  [Symbol.asyncDispose](): Promise<void>;
}

interface Waiting {
  ids: Set<string>;
  responses: RpcResponse[];
  resolve(responses: RpcResponse[]): void;
  reject(error: unknown): void;
  /** Called before anything that came after the answers is looked at. */
  taken?: ((responses: RpcResponse[]) => void) | undefined;
}

export interface SocketOptions {
  url: string;
  token: string;
  WebSocket: SocketClass;
  reconnect?: Reconnect;
}

/** Calls and pushes over one WebSocket. */
export function socketTransport({ url, token, WebSocket, reconnect = {} }: SocketOptions): RpcTransport & SocketCalls {
  const waiting = new Set<Waiting>();
  const readers = new Set<PushQueue>();
  const subscriptions = createSubscriptions();
  let last = 0;

  const connection = createConnection(() => new WebSocket(url, protocolsFor(token)), reconnect, {
    async onOpen(socket) {
      const request = subscriptions.current();
      if (request === undefined) return;
      await control(socket, "rpc.subscribe", request, subscriptions.moved);
    },
    onFrame(frame) {
      for (const message of Array.isArray(frame) ? frame : [frame]) {
        if (isResponse(message)) take(message);
        else push(message as Push);
      }
    },
    onLost(error) {
      for (const call of waiting) call.reject(error); // Whether they were done is not known.
      waiting.clear();
      return { goOn: readers.size > 0 };
    },
    onGone(error) {
      for (const reader of readers) reader.fail(error);
    },
  });

  const push = (message: Push) => {
    subscriptions.note(message);
    for (const reader of readers) reader.add(message);
  };

  const take = (response: RpcResponse) => {
    // A null id refuses a whole message; answers are not bound to an order, so every open call may be meant.
    for (const call of waiting) {
      if (response.id !== null && !call.ids.delete(String(response.id))) continue;
      call.responses.push(response);
      if (response.id !== null && call.ids.size > 0) return;
      waiting.delete(call);
      call.taken?.(call.responses);
      call.resolve(call.responses);
      if (response.id !== null) return;
    }
  };

  const exchange = (
    socket: SocketLike,
    message: RpcRequest | RpcRequest[],
    signal?: AbortSignal,
    taken?: Waiting["taken"],
  ) =>
    new Promise<RpcResponse[]>((resolve, reject) => {
      const requests = Array.isArray(message) ? message : [message];
      const ids = new Set(requests.flatMap(({ id }) => (id === undefined ? [] : [id])));
      socket.send(JSON.stringify(message));
      if (ids.size === 0) return resolve([]);
      const call: Waiting = { ids, responses: [], resolve, reject, taken };
      waiting.add(call);
      signal?.addEventListener("abort", () => {
        waiting.delete(call);
        reject(signal.reason);
      });
    });

  /** `apply` gets the result as it comes: pushes that came with it are noted after it, and must not be undone. */
  const control = async (
    socket: SocketLike,
    method: string,
    params: object,
    apply: (result: Subscribed) => void = () => {},
  ) => {
    last += 1;
    const id = `${method} ${last}`;
    const taken = ([answer]: RpcResponse[]) => {
      if (answer !== undefined && answer.error === undefined) apply(answer.result as Subscribed);
    };
    const [response] = await exchange(socket, { jsonrpc: "2.0", method, params, id }, undefined, taken);
    if (response?.error !== undefined) throw new RpcError(response.error);
  };

  return {
    async send(message, signal) {
      const socket = await withSignal(connection.ready(), signal);
      return exchange(socket, message, signal);
    },
    async subscribe(request) {
      const socket = await connection.ready();
      await control(socket, "rpc.subscribe", request, (begun) => subscriptions.add(request, begun));
    },
    async unsubscribe(request) {
      subscriptions.remove(request);
      await control(await connection.ready(), "rpc.unsubscribe", request);
    },
    pushes({ signal } = {}) {
      const reader = createPushQueue((queue) => readers.delete(queue));
      readers.add(reader);
      if (signal?.aborted) reader.fail(signal.reason);
      signal?.addEventListener("abort", () => reader.fail(signal.reason));
      connection.ready().catch((error: unknown) => reader.fail(error));
      return reader;
    },
    close() {
      connection.close();
      for (const call of waiting) call.reject(new ConnectionError("the client was closed"));
      waiting.clear();
      for (const reader of [...readers]) void reader.return?.();
    },
    async [Symbol.asyncDispose]() {
      this.close();
    },
  };
}

/** Stops waiting when the signal says so. */
async function withSignal<Value>(promise: Promise<Value>, signal?: AbortSignal): Promise<Value> {
  if (signal === undefined) return promise;
  signal.throwIfAborted();
  return new Promise((resolve, reject) => {
    signal.addEventListener("abort", () => reject(signal.reason), { once: true });
    promise.then(resolve, reject);
  });
}
