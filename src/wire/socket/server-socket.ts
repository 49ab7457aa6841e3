import { createRequire } from "node:module";
import type * as Ws from "ws";

// Loaded with `require`, which is faster: for an import, Node first scans a CommonJS package for its exports.
const { WebSocket, WebSocketServer } = createRequire(import.meta.url)("ws") as typeof Ws;

/**
 * A WebSocket whose owner decides when it closes. `ws` calls `close` when the client closes the connection or breaks the protocol, and
 * earlier calls would then get no answer. `test/wire/ws/closing.test.ts` fails if a version of `ws` closes in another way.
 */
export class ServerSocket extends WebSocket {
  /** Called instead of closing. It must call `close` once the answers have been sent. */
  onClosing: ((close: () => void) => void) | undefined = undefined;

  override close(code?: number, reason?: string | Buffer): void {
    const close = (): void => super.close(code, reason);
    if (this.onClosing) this.onClosing(close);
    else close();
  }
}

/** Options that are missing in the types of `ws`. */
type NewOptions = { maxFragments: number; closeTimeout: number };

export function createSocketServer(options: Ws.ServerOptions & NewOptions): Ws.Server<typeof ServerSocket> {
  return new WebSocketServer({ ...options, WebSocket: ServerSocket });
}
