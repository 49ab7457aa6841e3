import { once } from "node:events";
import { createServer } from "node:net";

// Below the ports that the system assigns, so that a restarted process finds its own port free.
const PORTS = { from: 20_000, count: 12_000 };

/** A port that was free a moment ago. */
export async function freePort(): Promise<number> {
  for (;;) {
    const port = PORTS.from + Math.floor(Math.random() * PORTS.count);
    const server = createServer().listen(port, "127.0.0.1");
    const isFree = await new Promise((resolve) => {
      server.once("listening", () => resolve(true)).once("error", () => resolve(false));
    });
    if (!isFree) continue;
    server.close();
    await once(server, "close");
    return port;
  }
}
