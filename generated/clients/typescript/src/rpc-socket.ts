// Copied by "npm run generate" from scripts/generate/runtime/typescript/rpc-socket.ts; do not edit.
import type { Push, Subscribe, Subscribed, Unsubscribe } from "./push-types.ts";
import { attempt } from "./attempts.ts";
import { refuseUnknown } from "./call-options.ts";
import { rpcError } from "./error.ts";
import { createExchanges } from "./exchanges.ts";
import { createPushQueue, type PushQueue } from "./push-queue.ts";
import type { Send } from "./rpc-calls.ts";
import { isResponse, type RpcResponse } from "./rpc-message.ts";
import type { CallOptions, Settings, SocketLike } from "./settings.ts";
import { clientClosed, createConnection, protocolsFor } from "./socket.ts";
import { createSubscriptions } from "./subscriptions.ts";

/** The calls that exist only on a WebSocket. */
export interface SocketCalls {
  /** Starts streams, or continues them. The client remembers the streams and their positions over lost connections. */
  subscribe(request: Subscribe, options?: CallOptions): Promise<void>;
  unsubscribe(request: Unsubscribe, options?: CallOptions): Promise<void>;
  /**
   * Every push from now on. Each reader receives all of them. The client reopens a lost connection and resumes its subscriptions. If that
   * fails, the reader gets a GatewayError.
   */
  pushes(options?: { signal?: AbortSignal }): AsyncIterableIterator<Push>;
  close(): void;
  [Symbol.asyncDispose](): Promise<void>;
}

/** Calls and pushes over one WebSocket, which is opened by the first call. */
export function openSocket(settings: Settings): { send: Send; calls: SocketCalls } {
  const { WebSocket } = settings;
  if (WebSocket === undefined)
    throw new TypeError("Node 20 has no WebSocket. Install ws and pass its class as `WebSocket`.");
  const exchanges = createExchanges();
  const readers = new Set<PushQueue>();
  const subscriptions = createSubscriptions();
  const url = `${settings.url.replace(/^http/i, "ws")}/rpc/ws`;
  let last = 0;

  const connection = createConnection(
    () => new WebSocket(url, protocolsFor(settings.tokenOf("rpc", "rpc.connect"))),
    settings.reconnect,
    {
      async onOpen(socket) {
        const request = subscriptions.current();
        if (request !== undefined) await control(socket, "rpc.subscribe", request, subscriptions.moved);
      },
      onFrame(frame) {
        for (const message of Array.isArray(frame) ? frame : [frame]) {
          if (isResponse(message)) exchanges.answer(message);
          else push(message as Push);
        }
      },
      onLost(error) {
        exchanges.fail(error); // The calls may have been carried out.
        return { reconnect: readers.size > 0 };
      },
      onGone(error) {
        for (const reader of readers) reader.fail(error);
      },
    },
  );

  const push = (message: Push) => {
    subscriptions.note(message);
    for (const reader of readers) reader.add(message);
  };

  /** `apply` gets the result when it arrives: pushes that arrived with it are recorded after it, and must not be undone. */
  const control = async (
    socket: SocketLike,
    method: string,
    params: object,
    apply: (result: Subscribed) => void = () => {},
    signal?: AbortSignal,
  ) => {
    last += 1;
    const id = `${method} ${last}`;
    const onAnswer = ([response]: RpcResponse[]) => {
      if (response !== undefined && response.error === undefined) apply(response.result as Subscribed);
    };
    const [response] = await exchanges.send(socket, { jsonrpc: "2.0", method, params, id }, signal, onAnswer);
    if (response?.error !== undefined) throw rpcError(response.error, method);
  };

  const ready = (signal: AbortSignal) => withSignal(connection.ready(), signal);
  const controlled = (
    operation: string,
    options: CallOptions,
    call: (socket: SocketLike, signal: AbortSignal) => Promise<void>,
  ): Promise<void> => {
    refuseUnknown(operation, {}, undefined, options);
    return attempt(settings, { operation, isRepeatable: true }, options, async (signal) =>
      call(await ready(signal), signal),
    );
  };

  const send: Send = async (message, _operation, _options, signal) => ({
    responses: await exchanges.send(await ready(signal), message, signal),
  });
  const calls: SocketCalls = {
    subscribe: (request, options = {}) =>
      controlled("rpc.subscribe", options, (socket, signal) =>
        control(socket, "rpc.subscribe", request, (begun) => subscriptions.add(request, begun), signal),
      ),
    unsubscribe(request, options = {}) {
      subscriptions.remove(request);
      return controlled("rpc.unsubscribe", options, (socket, signal) =>
        control(socket, "rpc.unsubscribe", request, undefined, signal),
      );
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
      exchanges.fail(clientClosed());
      for (const reader of [...readers]) void reader.return?.();
    },
    async [Symbol.asyncDispose]() {
      this.close();
    },
  };
  return { send, calls };
}

/** Stops waiting when the signal is aborted. */
async function withSignal<Value>(promise: Promise<Value>, signal: AbortSignal): Promise<Value> {
  signal.throwIfAborted();
  return new Promise((resolve, reject) => {
    signal.addEventListener("abort", () => reject(signal.reason), { once: true });
    promise.then(resolve, reject);
  });
}
