import { once } from "node:events";
import { createServer } from "node:net";

// Below those that the system gives to whoever asks for any: a process that is started again finds its own free.
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
