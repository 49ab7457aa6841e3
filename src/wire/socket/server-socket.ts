import { createRequire } from "node:module";
import type * as Ws from "ws";

// Loaded as CommonJS: Node would first read an imported package through for its names, which takes five times as long.
const { WebSocket, WebSocketServer } = createRequire(import.meta.url)("ws") as typeof Ws;

/**
 * A WebSocket whose owner decides when it closes. `ws` calls `close` when its client closes or breaks a rule, and would then send no answer
 * to the calls before that. `test/wire/ws/closing.test.ts` fails if a version of `ws` closes in another way.
 */
export class ServerSocket extends WebSocket {
  /** Gets the closing of the socket, to call it when the answers are sent. */
  onClosing: ((close: () => void) => void) | undefined = undefined;

  override close(code?: number, reason?: string | Buffer): void {
    const close = (): void => super.close(code, reason);
    if (this.onClosing) this.onClosing(close);
    else close();
  }
}

/** The options that its types do not know yet. */
type NewOptions = { maxFragments: number; closeTimeout: number };

export function createSocketServer(options: Ws.ServerOptions & NewOptions): Ws.Server<typeof ServerSocket> {
  return new WebSocketServer({ ...options, WebSocket: ServerSocket });
}
