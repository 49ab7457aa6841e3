import { randomBytes } from "node:crypto";
import { connect, type OnReadOpts, type Socket } from "node:net";

const END = "\r\n\r\n";

/** Opens a WebSocket at the level of bytes. The bytes after the handshake are passed to `onBytes`, which must not store them. */
export function openSocket(url: string, token: string, onBytes: (bytes: Buffer) => void): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const { hostname, port, host } = new URL(url);
    let head = "";
    let isOpen = false;
    const callback = (length: number, buffer: Uint8Array): boolean => {
      const bytes = Buffer.from(buffer.buffer, buffer.byteOffset, length);
      if (isOpen) onBytes(bytes);
      else shake(bytes);
      return true;
    };
    const shake = (bytes: Buffer): void => {
      head += bytes.toString("latin1");
      const end = head.indexOf(END);
      if (end < 0) return;
      if (!head.startsWith("HTTP/1.1 101 ")) {
        socket.destroy(new Error(`the upgrade was answered ${head.split("\r\n")[0]}`));
        return;
      }
      isOpen = true;
      resolve(socket);
      const first = Buffer.from(head.slice(end + END.length), "latin1");
      if (first.length > 0) onBytes(first);
    };
    const onread: OnReadOpts = { buffer: () => scratch, callback };
    const socket = connect({ host: hostname, port: Number(port), noDelay: true, onread });
    socket.once("error", reject);
    socket.once("close", () => reject(new Error("the connection was closed before the upgrade was answered")));
    socket.once("connect", () => socket.write(handshake(host, token)));
  });
}

/** One buffer for all, because the read bytes are not stored. */
const scratch = Buffer.allocUnsafe(256 * 1024);

function handshake(host: string, token: string): string {
  return [
    "GET /rpc/ws HTTP/1.1",
    `Host: ${host}`,
    "Connection: Upgrade",
    "Upgrade: websocket",
    "Sec-WebSocket-Version: 13",
    `Sec-WebSocket-Key: ${randomBytes(16).toString("base64")}`,
    `Authorization: Bearer ${token}${END}`,
  ].join("\r\n");
}
