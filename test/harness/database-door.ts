import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";

/**
 * A proxy to a server. It can be open, closed, or open for a single connection whose answers are slow. A held one does not answer new connections. A
 * silent one answers none and closes none, like a pulled cable.
 */
export async function createDoor(url: string) {
  const through = new URL(url);
  const port = Number(through.port);
  const sockets = new Set<Socket>();
  const beyond = new Set<Socket>();
  let mode: "open" | "closed" | "one" | "held" | "silent" = "open";
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
    if (mode === "held") held++;
    if (mode === "held" || mode === "silent") return;
    const far = connect(port, "127.0.0.1").on("error", () => near.destroy());
    near.on("data", (bytes) => {
      if (mode === "silent") return;
      if (cut === undefined || !bytes.includes(cut)) return far.write(bytes);
      cut = undefined;
      near.destroy();
    });
    beyond.add(far);
    near.on("close", () => mode === "silent" || far.destroy());
    far.on("data", (bytes) => setTimeout(() => mode !== "silent" && near.writable && near.write(bytes), delayMs));
    far.on("close", () => {
      beyond.delete(far);
      if (mode !== "silent") near.destroy();
    });
  });
  await once(server.listen(0, "127.0.0.1"), "listening");
  through.port = String((server.address() as AddressInfo).port);
  return {
    url: through.href,
    /** The number of refused connections. */
    refused: () => refused,
    /** The number of connections without an answer. */
    held: () => held,
    set(next: typeof mode): void {
      const wasSilent = mode === "silent";
      mode = next;
      // A silent connection has lost bytes.
      if (mode === "closed" || wasSilent) for (const socket of [...sockets, ...beyond]) socket.destroy();
    },
    /** Ends the first connection with this query. */
    cutAt(words: string): void {
      cut = words;
    },
    [Symbol.dispose]() {
      server.close();
      for (const socket of [...sockets, ...beyond]) socket.destroy();
    },
  };
}
