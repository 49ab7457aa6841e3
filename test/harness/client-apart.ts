import { once } from "node:events";
import { Worker } from "node:worker_threads";
import { afterAll } from "vitest";
import type { Place } from "./contract.ts";
import { watchLoop } from "./loop.ts";
import { replyIn, requestText } from "./raw.ts";
import type { Reply } from "./rest.ts";

/**
 * The longest time for which the gateway of this process blocks the loop for one request, and its reply. The client has its own thread, and the reply
 * is checked after the measurement, so the test itself is not measured.
 */
type Watch = (
  place: Place,
  headers: Record<string, string>,
  body: Buffer,
) => Promise<{ longest: number; reply: Reply }>;

export function watchFromApart(url: string): Watch {
  const client = new Worker(new URL("./client-apart.mjs", import.meta.url));
  afterAll(() => client.terminate());
  const port = Number(new URL(url).port);
  return async (place, headers, body) => {
    const request = requestText(place, { ...headers, connection: "close" }, body);
    const longest = watchLoop();
    client.postMessage({ port, request });
    const [came] = (await once(client, "message")) as [Uint8Array];
    const most = longest();
    return { longest: most, reply: replyIn(place, Buffer.from(came).toString("latin1")) };
  };
}
