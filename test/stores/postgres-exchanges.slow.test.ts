import pg from "pg";
import { afterAll, beforeAll, describe, expect } from "vitest";
import type { Delivery } from "#store/store.ts";
import { postgresTests } from "#test/harness/postgres.ts";
import { queueEvent, queueOrder, startBeat } from "./inbound.ts";
import { testsOnTwo } from "./two-stores.ts";
import { deliveryOf, endTurn, LEASE_MS, NO_USAGE, RECORDER, times, type World } from "./world.ts";

/** The exchanges of each writing transaction that has ended, the one with the commit included. */
const counted: number[] = [];
const open = new WeakMap<object, number>();
const send = pg.Client.prototype.query;

function countedQuery(this: pg.Client, ...args: unknown[]): unknown {
  const [text] = args;
  if (typeof text === "string") {
    const isFirst = text.startsWith("begin;");
    const before = isFirst ? 0 : open.get(this);
    if (before !== undefined) {
      open.set(this, before + 1);
      if (/(^|;\n)commit$/.test(text)) {
        counted.push(before + 1);
        open.delete(this);
      }
    }
  }
  return (send as (...all: unknown[]) => unknown).apply(this, args);
}

/** The exchanges of the transactions of a call; a poll may come between. */
async function exchangesOf(call: () => Promise<unknown>): Promise<number> {
  counted.length = 0;
  await call();
  return Math.max(...counted);
}

await postgresTests((server) => {
  const test = testsOnTwo(server);

  describe("exchanges with PostgreSQL of a transaction", () => {
    beforeAll(() => {
      pg.Client.prototype.query = countedQuery as typeof send;
    });
    afterAll(() => {
      pg.Client.prototype.query = send;
    });

    const claimBy = (world: World) => ({
      now: world.clock.now(),
      node: "node_a",
      leaseMs: LEASE_MS,
      replyMessageId: world.newId("msg"),
    });
    const delivery = (n: number): Delivery => deliveryOf(`dlv_${n}`);
    const usage = { model: "echo", usage: NO_USAGE, latencyMs: 1 };

    test("are few", async ({ on: { one, two } }) => {
      const found: Record<string, number> = {};
      // The agent, the counters of the hour and a full recorder are there.
      const recorder = { ...RECORDER, entries: 3 };
      for (let n = 0; n < 5; n++) {
        await endTurn(one.store, one.clock.now(), { session: "chat:known", delivery: delivery(n), recorder });
      }
      const seen = { session: "chat:known", recorder };
      found.newSession = await exchangesOf(() => one.start({ session: "chat:new", delivery: delivery(10), recorder }));
      found.knownSession = await exchangesOf(() => one.start({ ...seen, delivery: delivery(11) }));
      await two.start({ session: "chat:two" });
      found.elsewhere = await exchangesOf(() => two.start({ session: "chat:new", delivery: delivery(12), recorder }));
      const claimedTurn = await (async () => {
        let turns: Awaited<ReturnType<World["claim"]>>["turns"] = [];
        found.claim = await exchangesOf(async () => {
          turns = (await one.claim()).turns;
        });
        return turns;
      })();
      const [first, second] = claimedTurn;
      if (!first || !second) throw new Error("two turns are claimed");
      found.endTurn = await exchangesOf(() => one.end(first, { usage }));
      found.endAndClaim = await exchangesOf(() => Promise.all([one.end(second, { usage }), one.claim()]));
      found.startClaimed = await exchangesOf(() =>
        one.start({ session: "chat:claimed", delivery: delivery(13), recorder, claim: claimBy(one) }),
      );
      found.queueEvent = await exchangesOf(() => queueEvent(one, { delivery: delivery(14), recorder, beatNow: true }));
      found.queueMany = await exchangesOf(() =>
        Promise.all(times(200, (n) => one.store.queueEvent(queueOrder(1, { delivery: delivery(100 + n), recorder })))),
      );
      found.record = await exchangesOf(() => one.store.recordDelivery(delivery(500), recorder));
      let step: Awaited<ReturnType<typeof startBeat>> | undefined;
      found.startBeat = await exchangesOf(async () => {
        step = await startBeat(one, { node: "node_a" });
      });
      const claimed = step?.outcome === "started" ? step.started.claimed : undefined;
      if (!claimed) throw new Error("the beat is not started");
      found.endBeatTurn = await exchangesOf(() => one.end(claimed, { usage }));
      found.endBeat = await exchangesOf(() => startBeat(one, { node: "node_a" }));
      found.extend = await exchangesOf(() => one.store.extendClaims([claimed.claim], LEASE_MS));
      expect(found).toMatchInlineSnapshot(`
        {
          "claim": 6,
          "elsewhere": 3,
          "endAndClaim": 5,
          "endBeat": 3,
          "endBeatTurn": 3,
          "endTurn": 2,
          "extend": 2,
          "knownSession": 2,
          "newSession": 2,
          "queueEvent": 2,
          "queueMany": 2,
          "record": 2,
          "startBeat": 3,
          "startClaimed": 2,
        }
      `);
    });
  });
});
