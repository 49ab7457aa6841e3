import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";

/** A way to a server that can be cut without a word, as when a cable is pulled: nothing is closed, nothing comes through. */
export const createWire = async (port: number) => {
  const sockets = new Set<Socket>();
  let isCut = false;
  const server = createServer({ allowHalfOpen: true }, (near) => {
    sockets.add(near);
    near.on("error", () => {}).on("close", () => sockets.delete(near));
    const far = connect({ port, host: "127.0.0.1", allowHalfOpen: true });
    sockets.add(far);
    far.on("error", () => isCut || near.destroy()).on("close", () => sockets.delete(far));
    for (const [from, to] of [
      [near, far],
      [far, near],
    ] as const) {
      from.on("data", (bytes) => isCut || to.write(bytes));
      from.on("end", () => isCut || to.end());
      from.on("close", () => isCut || to.destroy());
    }
  });
  await once(server.listen(0, "127.0.0.1"), "listening");
  return {
    port: (server.address() as AddressInfo).port,
    cut: () => {
      isCut = true;
    },
    /** New connections come through again; what was lost is lost. */
    mend: () => {
      isCut = false;
      for (const socket of sockets) socket.destroy();
    },
    async [Symbol.asyncDispose]() {
      for (const socket of sockets) socket.destroy();
      server.close();
      await once(server, "close");
    },
  };
};
