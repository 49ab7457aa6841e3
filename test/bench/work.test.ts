import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { expect, test } from "vitest";
import { EVENTS } from "./work.ts";

type Told = { accepted: number; queued?: number; refused?: number; died?: number; dead?: number; statuses: string[] };

/** A server that tells of its events as the gateway does: in its metrics, and in pages of two. */
const serveEvents = async ({ accepted, statuses, queued = 0, refused = 0, died = 0, dead = 0 }: Told) => {
  const server = createServer((req, res) => {
    const { pathname, searchParams } = new URL(req.url ?? "", "http://x");
    if (pathname === "/metrics") {
      const wake = `surface="hooks",operation="hooks.wake"`;
      return res.end(`gateway_requests_total{${wake},status="2xx"} ${accepted}
gateway_requests_total{${wake},status="4xx"} 9
gateway_events_queued ${queued}
gateway_events_refused_total{reason="gateway-busy"} ${refused}
gateway_events_died_total{agent="main"} ${died}
gateway_events_dead ${dead}
`);
    }
    const from = Number(searchParams.get("cursor") ?? 0);
    const events = statuses.slice(from, from + 2).map((status, n) => ({ event_id: `evt_${from + n}`, status }));
    const next_cursor = from + 2 < statuses.length ? String(from + 2) : null;
    res.end(JSON.stringify({ events, next_cursor }));
  });
  await once(server.listen(0, "127.0.0.1"), "listening");
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const dispose = async () => {
    server.closeAllConnections();
    server.close();
  };
  return { url, [Symbol.asyncDispose]: dispose };
};

const handled = (count: number) => Array<string>(count).fill("handled");

test("a load of events counts when each that was accepted is there, and handled", async () => {
  await using server = await serveEvents({ accepted: 5, statuses: handled(5) });
  expect(await EVENTS.count(server.url)).toBe(5);
  await EVENTS.requireEnded(server.url, 5);
  await expect(EVENTS.requireEnded(server.url, 6)).rejects.toThrow("only 5 of 6 events were accepted");
});

test.each([
  ["is lost", { accepted: 5, statuses: handled(4) }, "5 events were accepted, and 4 handled"],
  ["came back after all", { accepted: 3, statuses: [...handled(2), "queued"] }, "evt_2 is queued"],
  ["waits for longer than 2 s", { accepted: 3, queued: 1, statuses: handled(3) }, "after 2 s 1 events wait"],
  ["was refused", { accepted: 3, refused: 1, statuses: handled(3) }, "1 events were refused"],
  ["was given up", { accepted: 3, died: 2, statuses: handled(3) }, "2 events were given up"],
  ["is dead", { accepted: 3, dead: 1, statuses: handled(3) }, "1 events were dead"],
])("a load does not count when an event %s", async (_, told, words) => {
  await using server = await serveEvents(told);
  await expect(EVENTS.requireEnded(server.url, 3)).rejects.toThrow(words);
});
