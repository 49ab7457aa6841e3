import { describe, expect, test } from "vitest";
import { postgresTests } from "#test/harness/postgres.ts";
import type { Reply } from "#test/harness/rest.ts";
import { createWallClock, whyNoClock } from "#test/harness/wall-clock.ts";
import { type Client, clientOf, SQLITE, startNodes, until } from "./nodes.ts";

function idOf({ json }: Reply): unknown {
  return json.eventId ?? json.turnId;
}
function isRepeat({ headers }: Reply): boolean {
  return headers.get("idempotent-replayed") === "true";
}

type Send = (client: Client, key: string, text: string) => Promise<Reply>;
const WAYS: Record<string, Send> = {
  wake: (client, key, text) => client.wake({ text }, { "idempotency-key": key }),
  turn: (client, key, message) => client.agent({ message }, { "idempotency-key": key }),
};

/** Sent five times at once to all of them, and again to each: all get one id, and the same key with another body is refused. */
async function expectOnce(clients: readonly Client[], send: Send, key: string, known?: unknown): Promise<unknown> {
  const at = (n: number) => clients[n % clients.length] as Client;
  const replies = await Promise.all([0, 1, 2, 3, 4].map((n) => send(at(n), key, "the same")));
  // A request that arrives while the first is being stored may have to wait, and so may one whose gateway is opening its connections.
  const taken = replies.filter(({ status }) => status !== 409 && status !== 503);
  expect(taken.length).toBeGreaterThan(0);
  expect(taken.map(({ status }) => status)).toEqual(taken.map(() => 200));
  expect(taken.filter((reply) => !isRepeat(reply))).toHaveLength(known === undefined ? 1 : 0);
  const ids = new Set(taken.map(idOf));
  expect(ids.size).toBe(1);
  if (known !== undefined) expect([...ids]).toEqual([known]);
  for (const client of clients) {
    const again = await until(async () => {
      const reply = await send(client, key, "the same");
      return reply.status !== 503 && reply;
    });
    expect([again.status, idOf(again), isRepeat(again)]).toEqual([200, [...ids][0], true]);
    expect((await send(client, key, "another")).error).toBe("idempotency-mismatch");
  }
  return [...ids][0];
}

describe("F20: a repeated delivery", () => {
  test.each(Object.entries(WAYS))(
    "%s: is one on SQLite, across kill -9",
    async (_, send) => {
      await using fleet = await startNodes({ store: SQLITE });
      const id = await expectOnce([clientOf(fleet.first)], send, "a key");
      await fleet.first.kill();
      fleet.first.start();
      await fleet.first.up();
      await expectOnce([clientOf(fleet.first)], send, "a key", id);
    },
    60_000,
  );

  const why = whyNoClock();
  test.skipIf(why)(
    `counts for 24 hours, and then its key is free${why ? ` (${why})` : ""}`,
    async () => {
      using clock = createWallClock();
      await using fleet = await startNodes({ env: clock.env });
      const client = clientOf(fleet.first);
      const first = await client.wake({ text: "the same" }, { "idempotency-key": "a key" });
      clock.jumpTo(23 * HOUR_MS);
      const again = await client.wake({ text: "the same" }, { "idempotency-key": "a key" });
      expect([idOf(again), isRepeat(again)]).toEqual([idOf(first), true]);
      clock.jumpTo(25 * HOUR_MS);
      const later = await client.wake({ text: "the same" }, { "idempotency-key": "a key" });
      expect([later.status, isRepeat(later), idOf(later) === idOf(first)]).toEqual([200, false, false]);
    },
    60_000,
  );
});

const HOUR_MS = 3_600_000;

await postgresTests((server) => {
  test("F20: a repeated delivery is one over three gateways, and across the end of them all", async () => {
    await using fleet = await startNodes({ count: 3, store: { type: "postgres", url: await server.createSchema() } });
    const clients = fleet.nodes.map(clientOf);
    const ids = new Map<string, unknown>();
    for (const [name, send] of Object.entries(WAYS)) ids.set(name, await expectOnce(clients, send, "a key"));
    await Promise.all(fleet.nodes.map((node) => node.kill()));
    for (const node of fleet.nodes) node.start();
    await Promise.all(fleet.nodes.map((node) => node.up()));
    for (const [name, send] of Object.entries(WAYS)) await expectOnce(clients, send, "a key", ids.get(name));
  });
});
