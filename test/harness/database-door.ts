import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";

/** A way to a server that is open, closed, open for one connection alone, on which every answer takes a while, or held: who comes hears nothing. */
export const createDoor = async (url: string) => {
  const through = new URL(url);
  const port = Number(through.port);
  const sockets = new Set<Socket>();
  let mode: "open" | "closed" | "one" | "held" = "open";
  let refused = 0;
  let held = 0;
  let cut: string | undefined;
  const server = createServer((near) => {
    near.on("error", () => {}).on("close", () => sockets.delete(near));
    if (mode === "closed" || (mode === "one" && sockets.size > 0)) {
      refused++;
      near.destroy();
      return;
    }
    const delayMs = mode === "one" ? 60 : 0;
    sockets.add(near);
    if (mode === "held") {
      held++;
      return;
    }
    const far = connect(port, "127.0.0.1").on("error", () => near.destroy());
    near.on("data", (bytes) => {
      if (cut === undefined || !bytes.includes(cut)) return far.write(bytes);
      cut = undefined;
      near.destroy();
    });
    near.on("close", () => far.destroy());
    far.on("data", (bytes) => setTimeout(() => near.writable && near.write(bytes), delayMs));
    far.on("close", () => near.destroy());
  });
  await once(server.listen(0, "127.0.0.1"), "listening");
  through.port = String((server.address() as AddressInfo).port);
  return {
    url: through.href,
    /** How many connections were turned away. */
    refused: () => refused,
    /** How many connections hear nothing. */
    held: () => held,
    set(next: typeof mode): void {
      mode = next;
      if (mode === "closed") for (const socket of sockets) socket.destroy();
    },
    /** Ends the first connection that asks this. */
    cutAt(words: string): void {
      cut = words;
    },
    [Symbol.dispose]() {
      server.close();
      for (const socket of sockets) socket.destroy();
    },
  };
};
