import type { IncomingMessage } from "node:http";
import type { Socket } from "node:net";

/** Takes over a connection that asks to be a WebSocket, with all later events: the taker handles its errors and its end. */
export type OnUpgrade = (req: IncomingMessage, socket: Socket, head: Buffer) => void;

/**
 * Hands on a request that asks for a WebSocket. Any other upgrade may be ignored, and is: such a request is read once more
 * without the wish, as Node lets nobody answer it otherwise.
 */
export const createUpgrades = (onUpgrade: OnUpgrade, http1: (socket: Socket) => void) => {
  const open = new Set<Socket>();
  return {
    take(req: IncomingMessage, socket: Socket, head: Buffer): void {
      if (tokensOf(req.headers.upgrade).includes("websocket")) {
        open.add(socket);
        socket.on("close", () => open.delete(socket)).on("error", () => {});
        onUpgrade(req, socket, head);
      } else {
        http1(socket);
        socket.emit("data", Buffer.concat([Buffer.from(headWithout(req), "latin1"), head]));
      }
    },
    destroy(): void {
      for (const socket of open) socket.destroy();
    },
  };
};

const tokensOf = (header: string | undefined): string[] =>
  (header ?? "").split(",").map((token) => token.trim().toLowerCase());

const WISHES = new Set(["upgrade", "http2-settings"]);

const headWithout = ({ method, url, httpVersion, rawHeaders }: IncomingMessage): string => {
  let head = `${method} ${url} HTTP/${httpVersion}\r\n`;
  for (let n = 0; n < rawHeaders.length; n += 2) {
    const [name, value] = [rawHeaders[n] as string, rawHeaders[n + 1] as string];
    const isConnection = name.toLowerCase() === "connection";
    const kept = isConnection ? tokensOf(value).filter((token) => !WISHES.has(token)) : [value];
    if (kept.length > 0 && !WISHES.has(name.toLowerCase())) head += `${name}: ${kept.join(", ")}\r\n`;
  }
  return `${head}\r\n`;
};
