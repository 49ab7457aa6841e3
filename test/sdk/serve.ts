import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";

/** An HTTP server on a free port of this machine, until the end of the block that uses it. */
export async function serve(listener: (req: IncomingMessage, res: ServerResponse) => Promise<void>) {
  const server: Server = createServer((req, res) => {
    listener(req, res).catch((error: unknown) => res.destroy(error instanceof Error ? error : undefined));
  });
  server.listen(0, "127.0.0.1");
  await new Promise((listening) => server.once("listening", listening));
  return {
    server,
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      await new Promise((closed) => server.close(closed));
    },
  };
}

export async function collect<Item>(items: AsyncIterable<Item>): Promise<Item[]> {
  const collected: Item[] = [];
  for await (const item of items) collected.push(item);
  return collected;
}
