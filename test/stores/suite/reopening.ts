import { describe, expect } from "vitest";
import type { ApiKey } from "#store/store.ts";
import { failEvent, news, queueEvent, startBeat, takeEvents, waiting } from "../inbound.ts";
import { testsOn } from "../tests-on.ts";
import { deliveryOf, type Engine, LEASE_MS, usedMore } from "../world.ts";

/** For durable engines only. */
export function reopeningTests(engine: Engine): void {
  const it = testsOn(engine);
  describe("reopening a store", () => {
    it("finds everything that was acknowledged", async ({ world }) => {
      expect(world.store.durable).toBe(true);
      const ended = await world.start({ key: "k", delivery: deliveryOf("dlv_1") });
      await world.release(await world.claimNext(), 0, usedMore(5, 0, 250));
      await world.end(await world.claimNext(), { reply: "hi", usage: usedMore(7, 2, 1e12), model: "slow" });
      const again = await world.start();
      await world.release(await world.claimNext(), 0, usedMore(1, 0, 3));
      const queued = await world.start({ waited: true, skillIds: ["sum"], announce: { channel: undefined, hops: 2 } });
      const key: ApiKey = {
        keyId: "key_1",
        name: "ci",
        prefix: "gw_1",
        hash: "0".repeat(64),
        scopes: ["chat"],
        createdAt: 1,
        lastUsedAt: 2,
      };
      await world.store.createKey(key);
      const read = async () => ({
        ...(await world.everything(["chat:a"], [ended.turnId, again.turnId, queued.turnId])),
        messages: await world.store.readMessages("chat:a", { limit: 10, includeToolCalls: true }),
        delivery: await world.store.getDelivery("dlv_1"),
        usage: await world.store.readUsage({ from: 0, to: Infinity }),
        keys: await world.store.listKeys(),
        page: await world.store.listSessions({ limit: 10 }),
        shares: await world.store.readShares(),
      });
      const before = await read();
      await world.reopen();
      expect(await read()).toEqual(before);
      await world.end(await world.claimNext(), { usage: usedMore(1, 0, 3) });
      expect((await world.store.getTurn(again.turnId))?.usage?.more).toEqual({ cached: 2, reasoning: 0, cost: 6 });
      expect((await world.claimNext()).hops).toBe(2);
    });

    it("finds events with their state, and the due beats and announcements", async ({ world }) => {
      const ids: string[] = [];
      for (let n = 0; n < 5; n++) ids.push((await queueEvent(world, { delivery: deliveryOf(`dlv_${n}`) })).eventId);
      const [handled, dead, taken] = ids as [string, string, string];
      await world.end(await takeEvents(world, [handled]));
      await failEvent(world, dead, 3);
      const working = await takeEvents(world, [taken]);
      await queueEvent(world, { key: "k", agent: "third", beatNow: true });
      await world.store.planBeat("other", { now: world.clock.now(), delayMs: 5_000, soonest: false });
      const { turnId } = await world.start({ session: "chat:b", announce: { channel: "ops", hops: 1 } });
      await world.end(await world.claimNext());
      // The new owner of the store may release the turns of its predecessor.
      await world.release(working);
      const read = async () => ({
        stats: world.store.stats(),
        events: await world.store.listEvents({ limit: 10 }),
        waiting: await waiting(world),
        news: await news(world),
        deliveries: await world.store.listDeliveries({ limit: 10 }),
        beats: await Promise.all(["main", "other", "third"].map((agent) => world.store.readBeat(agent))),
      });
      const before = await read();
      await world.reopen();
      expect(await read()).toEqual(before);
      expect((await queueEvent(world, { key: "k" })).ordinal).toBe(before.events.items[0]?.ordinal);
      expect((await queueEvent(world)).ordinal).toBeGreaterThan(before.events.items[0]?.ordinal ?? Infinity);
      const claim = { now: world.clock.now(), node: "node_b", leaseMs: LEASE_MS };
      expect(await world.store.dueBeats(["main", "other", "third"])).toEqual({ due: ["third"], nextDueInMs: 5_000 });
      const { claimed } = await world.store.claimOutgoing({ ...claim, free: {}, others: { free: 9, before: 1e15 } });
      expect(claimed.map(({ message }) => message)).toMatchObject([{ id: turnId, channel: "ops", hops: 1 }]);
    });

    it("continues a running beat, even between two turns", async ({ world }) => {
      for (let n = 0; n < 3; n++) await queueEvent(world);
      await queueEvent(world, { beatNow: true });
      const step = { batch: { limit: 2 }, node: undefined } as const;
      await startBeat(world, step);
      await world.reopen();
      expect(await startBeat(world, step)).toEqual({ outcome: "not-due" });
      await queueEvent(world);
      await world.end(await world.claimNext(), { status: "failed" });
      await world.reopen();
      expect((await world.store.dueBeats(["main"])).due).toEqual(["main"]);
      await startBeat(world, step);
      await world.end(await world.claimNext());
      expect(await startBeat(world, step)).toMatchObject({ outcome: "ended", events: 4, turns: 2, returned: 2 });
      expect((await news(world)).at(-1)).toMatchObject({ name: "heartbeat.ran", events: 4 });
      expect(await waiting(world)).toHaveLength(3);
    });

    it("finds its idempotency keys", async ({ world }) => {
      const first = await world.start({ key: "k" });
      await world.reopen();
      const again = await world.store.startTurn(world.order({ key: "k" }));
      expect(again).toEqual({ turn: first, replayed: true });
    });

    it("allows claims of the queued turns, and continues the sequence of each session", async ({ world }) => {
      const { turnId } = await world.start();
      await world.reopen();
      expect((await world.claimNext()).turn.turnId).toBe(turnId);
      expect((await world.start()).seq).toBe(6);
    });
  });
}
