import { once } from "node:events";
import { type AddressInfo, createServer, type Socket } from "node:net";

/** A server that answers each request with the given bytes; `end` closes the connection after them. */
type Say = { bytes: string; end?: boolean };
export async function startRaw() {
  let next: Say = { bytes: "" };
  const sockets: Socket[] = [];
  const heard: string[] = [];
  const server = createServer({ noDelay: true }, (socket) => {
    sockets.push(socket.on("error", () => {}));
    socket.on("data", (bytes) => {
      heard.push(bytes.toString("latin1"));
      const { bytes: said, end = false } = next;
      if (end) socket.end(said, "latin1");
      else socket.write(said, "latin1");
    });
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    sockets,
    heard,
    say(say: Say) {
      next = say;
    },
    async [Symbol.asyncDispose]() {
      for (const socket of sockets) socket.destroy();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
