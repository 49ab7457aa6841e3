import { describe, expect } from "vitest";
import { postgresTests } from "#test/harness/postgres.ts";
import { failEvent, news, queueEvent, startBeat, waiting } from "./inbound.ts";
import { testsOnTwo } from "./two-stores.ts";
import { DAY, refusal, times } from "./world.ts";

await postgresTests((server) => {
  const it = testsOnTwo(server);

  describe("two gateways on one PostgreSQL", () => {
    it("start either a turn or an event for a key that both receive at once", async ({ on }) => {
      for (let round = 0; round < 10; round++) {
        const key = `k${round}`;
        const calls = [refusal(queueEvent(on.one, { key })), refusal(on.two.store.startTurn(on.one.order({ key })))];
        expect((await Promise.all(calls)).sort()).toEqual(["idempotency-mismatch", "not refused"]);
      }
    });

    it("give each event a place behind all acknowledged events, whichever gateway queued it", async ({ on }) => {
      const ordinals: number[] = [];
      for (let n = 0; n < 20; n++) ordinals.push((await queueEvent(n % 2 ? on.one : on.two)).ordinal);
      expect([...new Set(ordinals)].sort((a, b) => a - b)).toEqual(ordinals);
    });

    it("start one turn of a beat if both start it at the same time, and each can continue the beat", async ({ on }) => {
      const start = (n: number) => startBeat(n % 2 ? on.one : on.two, { node: `node_${n % 2}` });
      for (let round = 0; round < 8; round++) {
        await queueEvent(on.one, { beatNow: true });
        const steps = await Promise.all(times(6, start));
        const [claimed, ...more] = steps.flatMap((step) => (step.outcome === "started" ? step.started.claimed : []));
        expect(more).toEqual([]);
        if (!claimed) throw new Error("the turn was not started");
        await on.one.end(claimed);
        expect(await start(round)).toMatchObject({ outcome: "ended", events: 1, turns: 1 });
      }
    });

    it("keep a beat that an event requests on one gateway while the other starts or ends a beat", async ({ on }) => {
      for (let round = 0; round < 10; round++) {
        const ask = queueEvent(on.one, { beatNow: true });
        const step = async () => {
          const taken = await startBeat(on.two, { node: "node_b" });
          if (taken.outcome === "started" && taken.started.claimed) await on.two.end(taken.started.claimed);
          return taken.outcome;
        };
        await step();
        await ask;
        for (let outcome = await step(); outcome !== "not-due"; ) outcome = await step();
        expect(await waiting(on.two)).toEqual([]);
      }
    });

    it("count a key once that is used again after it expired", async ({ on }) => {
      const bytesWith = async () => {
        await queueEvent(on.one, { now: on.clock.now(), key: "k", hash: "one" });
        return on.one.store.stats().bytes;
      };
      const first = await bytesWith();
      await on.clock.advance(DAY);
      expect(await bytesWith()).toBeLessThan(2 * first);
    });

    it("fail an event on one of them if both fail it at once", async ({ on }) => {
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
