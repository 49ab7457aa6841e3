import { once } from "node:events";
import { createServer, type Socket } from "node:net";

/** A server that answers each connection with bytes of the test. */
export async function rawServer(answer: (socket: Socket, request: string) => void) {
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket.on("error", () => {}));
    socket.once("data", (data) => answer(socket, String(data)));
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    url: `http://127.0.0.1:${(server.address() as { port: number }).port}`,
    sockets,
    async [Symbol.asyncDispose]() {
      for (const socket of sockets) socket.destroy();
      await new Promise((closed) => server.close(closed));
    },
  };
}

/** Writes the same bytes while the other side accepts them. */
export function forever(socket: Socket, bytes: Buffer): void {
  const write = (): void => {
    while (socket.writable && socket.write(bytes)) {}
  };
  socket.on("drain", write);
  write();
}
