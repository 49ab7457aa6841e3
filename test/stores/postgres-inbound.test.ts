import { describe, expect } from "vitest";
import { postgresTests } from "#test/harness/postgres.ts";
import { failEvent, news, queueEvent, waiting } from "./inbound.ts";
import { connect, testsOnTwo } from "./two-stores.ts";
import { DAY, LEASE_MS, refusal, times, type World } from "./world.ts";

await postgresTests((server) => {
  const it = testsOnTwo(server);

  describe("two gateways on one PostgreSQL", () => {
    it("start either a turn or an event for a key that comes to both at once", async ({ on }) => {
      for (let round = 0; round < 10; round++) {
        const key = `k${round}`;
        const calls = [refusal(queueEvent(on.one, { key })), refusal(on.two.store.startTurn(on.one.order({ key })))];
        expect((await Promise.all(calls)).sort()).toEqual(["idempotency-mismatch", "not refused"]);
      }
    });

    it("keep the place of each event behind all that were answered before it, whoever took it", async ({ on }) => {
      const ordinals: number[] = [];
      for (let n = 0; n < 20; n++) ordinals.push((await queueEvent(n % 2 ? on.one : on.two)).ordinal);
      expect([...new Set(ordinals)].sort((a, b) => a - b)).toEqual(ordinals);
    });

    it("hold a beat on one of them at a time, and hand it on when its lease ends", async ({ on }) => {
      const claim = (world: World, node: string) =>
        world.store.claimBeats({ now: on.clock.now(), node, leaseMs: LEASE_MS, agents: ["main"] });
      for (let round = 0; round < 8; round++) {
        await on.one.store.planBeat("main", { now: on.clock.now(), delayMs: 0, soonest: false });
        const answers = await Promise.all(times(6, (n) => claim(n % 2 ? on.one : on.two, `node_${n % 2}`)));
        const [held, ...more] = answers.flatMap(({ beats }) => beats);
        expect(more).toEqual([]);
        if (!held) throw new Error("nobody has it");
        await on.clock.advance(LEASE_MS);
        const [again] = (await claim(held.node === "node_0" ? on.one : on.two, "other")).beats;
        expect(again?.fence).toBeGreaterThan(held.fence);
        expect(await on.one.store.extendBeat(held, LEASE_MS)).toBe(false);
        const end = { now: on.clock.now(), delayMs: undefined, ran: undefined, streamKeep: 10 };
        expect(await on.two.store.endBeat(held, end)).toBe(false);
        expect(await on.two.store.endBeat(again ?? held, end)).toMatchObject({ running: false });
      }
    });

    it("lose no beat that an event asks for on one while the other claims or ends it", async ({ on }) => {
      const end = { delayMs: undefined, ran: undefined, streamKeep: 10 };
      for (let round = 0; round < 10; round++) {
        const now = on.clock.now();
        const ask = queueEvent(on.one, { beatNow: true });
        const claim = () => on.two.store.claimBeats({ now, node: "node_b", leaseMs: LEASE_MS, agents: ["main"] });
        let [held] = (await claim()).beats;
        if (held) await on.two.store.endBeat(held, { now, ...end });
        const { ordinal } = await ask;
        const seen = held && held.through >= ordinal && (await waiting(on.two, { through: held.through })).length > 0;
        if (!seen) [held] = (await claim()).beats;
        expect(held?.through).toBeGreaterThanOrEqual(ordinal);
        if (!seen && held) await on.two.store.endBeat(held, { now, ...end });
      }
    });

    it("claim no beat while an event that asks for it is being kept", async ({ on }) => {
      await queueEvent(on.one, { beatNow: true });
      await using keeping = await connect(on.url);
      await keeping.query("begin");
      // As a gateway of the version before holds it, that does not write by turns.
      await keeping.query("select from beats where agent = 'main' for no key update");
      const order: string[] = [];
      const claim = on.two.store.claimBeats({ now: 1, node: "node_b", leaseMs: LEASE_MS, agents: ["main"] });
      const claimed = claim.then(() => order.push("claimed"));
      const waits = "select from pg_stat_activity where wait_event_type = 'Lock' and query like '%from beats%'";
      await expect.poll(async () => order.length + (await server.query(waits)).length).toBeGreaterThan(0);
      order.push("kept");
      await keeping.query("commit");
      await claimed;
      expect(order).toEqual(["kept", "claimed"]);
    });

    it("count a key once that is used again after its time", async ({ on }) => {
      const bytesWith = async () => {
        await queueEvent(on.one, { now: on.clock.now(), key: "k", hash: "one" });
        return on.one.store.stats().bytes;
      };
      const first = await bytesWith();
      await on.clock.advance(DAY);
      expect(await bytesWith()).toBeLessThan(2 * first);
    });

    it("give up an event on one of them, however both want to", async ({ on }) => {
      for (let n = 0; n < 20; n++) await queueEvent(on.one);
      const end = { now: on.clock.now(), streamKeep: 1_000, limit: 15 };
      const gone = await Promise.all(
        times(4, (n) => (n % 2 ? on.one : on.two).store.failQueuedEvents("main", "gone", end)),
      );
      expect(gone.reduce((sum, one) => sum + one, 0)).toBe(20);
      expect((await news(on.one)).filter(({ name }) => name === "event.dead")).toHaveLength(20);
      const [first] = (await on.one.store.listEvents({ limit: 1 })).items;
      const requeue = { now: on.clock.now(), beatNow: false, streamKeep: 1_000 };
      const again = await Promise.all(
        times(4, (n) => (n % 2 ? on.one : on.two).store.requeueEvent(first?.eventId ?? "", requeue)),
      );
      expect(new Set(again.map((event) => event?.ordinal)).size).toBe(1);
      await failEvent(on.two, first?.eventId ?? "", 3);
    });
  });
});
