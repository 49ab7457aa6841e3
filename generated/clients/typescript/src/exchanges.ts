// Copied by "npm run generate" from scripts/generate/runtime/typescript/exchanges.ts; do not edit.
import type { RpcRequest, RpcResponse } from "./rpc-message.ts";
import type { SocketLike } from "./settings.ts";

interface Exchange {
  ids: Set<string>;
  responses: RpcResponse[];
  resolve(responses: RpcResponse[]): void;
  reject(error: unknown): void;
  /** Called before the client reads anything that arrived after the responses. */
  onAnswer?: ((responses: RpcResponse[]) => void) | undefined;
}

/** The messages on a WebSocket that wait for responses. */
export function createExchanges() {
  const open = new Set<Exchange>();
  return {
    /** Sends a message. Resolves with the responses to all of its requests. */
    send(
      socket: SocketLike,
      message: RpcRequest | RpcRequest[],
      signal?: AbortSignal,
      onAnswer?: Exchange["onAnswer"],
    ): Promise<RpcResponse[]> {
      return new Promise((resolve, reject) => {
        const requests = Array.isArray(message) ? message : [message];
        const ids = new Set(requests.flatMap(({ id }) => (id === undefined ? [] : [id])));
        socket.send(JSON.stringify(message));
        if (ids.size === 0) return resolve([]);
        const exchange: Exchange = { ids, responses: [], resolve, reject, onAnswer };
        open.add(exchange);
        signal?.addEventListener("abort", () => {
          open.delete(exchange);
          reject(signal.reason);
        });
      });
    },
    answer(response: RpcResponse): void {
      // A null id refuses a complete message. Responses arrive in any order, so it may refuse any open message.
      for (const exchange of open) {
        if (response.id !== null && !exchange.ids.delete(String(response.id))) continue;
        exchange.responses.push(response);
        if (response.id !== null && exchange.ids.size > 0) return;
        open.delete(exchange);
        exchange.onAnswer?.(exchange.responses);
        exchange.resolve(exchange.responses);
        if (response.id !== null) return;
      }
    },
    /** Rejects every open exchange. */
    fail(error: unknown): void {
      for (const { reject } of open) reject(error);
      open.clear();
    },
  };
}
