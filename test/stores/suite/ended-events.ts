import { describe, expect } from "vitest";
import { failEvent, news, queueEvent, STREAM_KEEP, takeEvents, waiting } from "../inbound.ts";
import { testsOn } from "../tests-on.ts";
import { deliveryOf, type Engine, LOST, type World } from "../world.ts";

const requeue = (world: World, eventId: string, beatNow = false) =>
  world.store.requeueEvent(eventId, { now: world.clock.now(), beatNow, streamKeep: STREAM_KEEP });

const giveUp = (world: World, agent: string, limit = 100) =>
  world.store.failQueuedEvents(agent, "The agent is gone.", {
    now: world.clock.now(),
    streamKeep: STREAM_KEEP,
    limit,
  });

export const endedEventsTests = (engine: Engine): void => {
  const it = testsOn(engine);
  describe("events that ended", () => {
    it("is queued again when it is dead, behind all others and with no attempt counted", async ({ world }) => {
      const event = await queueEvent(world);
      const behind = await queueEvent(world);
      await failEvent(world, event.eventId, 3);
      const dead = await world.store.getEvent(event.eventId);
      const again = await requeue(world, event.eventId);
      const fresh = { status: "queued", attempts: 0, endedAt: undefined, ordinal: again?.ordinal };
      expect(again).toEqual({ ...dead, ...fresh });
      expect(again?.ordinal).toBeGreaterThan(behind.ordinal);
      expect(await world.store.getEvent(event.eventId)).toEqual(again);
      expect((await news(world)).at(-1)).toEqual({ name: "event.queued", eventId: event.eventId, agentName: "main" });
      await world.sweep({ eventsBefore: world.clock.now() + 1 });
      expect(await waiting(world)).toEqual([behind.eventId, event.eventId]);
      await failEvent(world, event.eventId, 3);
      expect(await world.store.getEvent(event.eventId)).toMatchObject({ status: "dead", attempts: 3 });
      await world.sweep({ eventsBefore: world.clock.now() + 1 });
      expect(await world.store.getEvent(event.eventId)).toBeUndefined();
    });

    it("changes nothing when one is to be queued again that is not dead", async ({ world }) => {
      const { eventId } = await queueEvent(world);
      const told = async () => [await news(world), await world.store.readBeat("main")];
      const before = await told();
      expect(await requeue(world, eventId, true)).toEqual(await world.store.getEvent(eventId));
      expect(await requeue(world, "evt_unknown", true)).toBeUndefined();
      expect(await told()).toEqual(before);
      await world.end(await takeEvents(world, [eventId]));
      expect(await requeue(world, eventId)).toMatchObject({ status: "handled" });
      expect(await waiting(world)).toEqual([]);
    });

    it("gives up the oldest of an agent that wait, so many at a time, and says why", async ({ world }) => {
      const ids: string[] = [];
      for (let n = 0; n < 4; n++) ids.push((await queueEvent(world)).eventId);
      const other = await queueEvent(world, { agent: "other" });
      await takeEvents(world, [ids[1] as string]);
      expect(await giveUp(world, "main", 2)).toBe(2);
      expect(await waiting(world)).toEqual([ids[3]]);
      expect(await giveUp(world, "main", 2)).toBe(1);
      expect(await giveUp(world, "main", 2)).toBe(0);
      const reason = "The agent is gone.";
      const dead = { status: "dead", attempts: 0, reason, endedAt: world.clock.now() };
      for (const n of [0, 2, 3]) expect(await world.store.getEvent(ids[n] as string)).toMatchObject(dead);
      expect(await world.store.getEvent(ids[1] as string)).toMatchObject({ status: "queued" });
      expect(await waiting(world, { agent: "other" })).toEqual([other.eventId]);
      const told = (await news(world)).filter(({ name }) => name === "event.dead");
      expect(told).toEqual(
        [0, 2, 3].map((n) => ({ name: "event.dead", eventId: ids[n], agentName: "main", attempts: 0, reason })),
      );
    });

    it("can be read after its end until it is past its time, and while it waits for ever", async ({ world }) => {
      const [handled, dead, open, taken] = [
        await queueEvent(world),
        await queueEvent(world),
        await queueEvent(world),
        await queueEvent(world),
      ];
      await world.end(await takeEvents(world, [handled.eventId]));
      await failEvent(world, dead.eventId, 3);
      await takeEvents(world, [taken.eventId]);
      const kept = async () => {
        const events = await Promise.all(
          [handled, dead, open, taken].map(({ eventId }) => world.store.getEvent(eventId)),
        );
        return events.map((event) => event !== undefined);
      };
      await world.sweep({ eventsBefore: world.clock.now() });
      expect(await kept()).toEqual([true, true, true, true]);
      await world.sweep({ eventsBefore: world.clock.now() + 1 });
      expect(await kept()).toEqual([false, false, true, true]);
      expect((await world.store.listEvents({ limit: 9 })).items).toHaveLength(2);
    });

    it("works off any number that ended in slices", async ({ world }) => {
      const ids: string[] = [];
      while (ids.length < 1_200) {
        const queued = await Promise.all(Array.from({ length: 100 }, () => queueEvent(world)));
        ids.push(...queued.map(({ eventId }) => eventId));
      }
      const last = await queueEvent(world);
      for (let at = 0; at < ids.length; at += 100) await world.end(await takeEvents(world, ids.slice(at, at + 100)));
      expect(await world.sweep({ eventsBefore: world.clock.now() + 1 })).toBeGreaterThan(1);
      expect((await world.store.listEvents({ limit: 9 })).items).toEqual([last]);
    });

    it("keeps the deliveries of events that have not ended, and lets them go after it", async ({ world }) => {
      const recorder = { entries: 2, bytes: 1e9, refused: 2 };
      const ids: string[] = [];
      for (let n = 0; n < 5; n++) {
        ids.push((await queueEvent(world, { delivery: deliveryOf(`dlv_${n}`), recorder })).eventId);
      }
      const claimed = await takeEvents(world, ids.slice(0, 2));
      const kept = async () => {
        const all = await Promise.all(ids.map((_, n) => world.store.getDelivery(`dlv_${n}`)));
        return all.flatMap((delivery, n) => (delivery ? [n] : []));
      };
      expect(await kept()).toEqual([0, 1, 2, 3, 4]);
      await world.end(claimed);
      await queueEvent(world, { delivery: deliveryOf("dlv_more"), recorder });
      expect(await kept()).toEqual([2, 3, 4]);
      await giveUp(world, "main");
      await queueEvent(world, { delivery: deliveryOf("dlv_last"), recorder });
      expect(await kept()).toEqual([]);
      expect(world.store.stats().deliveries).toBe(2);
    });

    it("lets the deliveries of turns that end at once go turn by turn, each turn's before those of its events", async ({
      world,
    }) => {
      const recorder = { entries: 6, bytes: 1e9, refused: 2 };
      for (const turn of ["one", "two"]) {
        const [first, second] = [
          await queueEvent(world, { delivery: deliveryOf(`dlv_${turn}_1`), recorder }),
          await queueEvent(world, { delivery: deliveryOf(`dlv_${turn}_2`), recorder }),
        ];
        await world.start({
          session: `chat:${turn}`,
          delivery: deliveryOf(`dlv_${turn}`),
          recorder,
          events: { ids: [first.eventId, second.eventId], maxAttempts: 1, streamKeep: STREAM_KEEP },
        });
      }
      await world.start({ session: "chat:three", delivery: deliveryOf("dlv_three"), recorder });
      await world.store.failQueuedTurns("main", LOST, world.clock.now());
      const gone: string[] = [];
      const ended = ["dlv_one", "dlv_one_1", "dlv_one_2", "dlv_two", "dlv_two_1", "dlv_two_2", "dlv_three"];
      // The first makes room for those that could not be let go before.
      for (let n = 0; n < 6; n++) {
        await world.store.recordDelivery({ ...deliveryOf(`dlv_more_${n}`), answer: "unmatched" }, recorder);
        for (const id of ended) if (!gone.includes(id) && !(await world.store.getDelivery(id))) gone.push(id);
        expect(gone).toEqual(ended.slice(0, n + 2));
      }
    });

    it("lets a delivery go once, though its event ended twice", async ({ world }) => {
      const recorder = { entries: 3, bytes: 1e9, refused: 2 };
      const { eventId } = await queueEvent(world, { delivery: deliveryOf("dlv_1"), recorder });
      await failEvent(world, eventId, 3);
      await requeue(world, eventId);
      await world.end(await takeEvents(world, [eventId]));
      for (let n = 2; n < 8; n++) {
        await world.store.recordDelivery({ ...deliveryOf(`dlv_${n}`), answer: "unmatched" }, recorder);
        const { items } = await world.store.listDeliveries({ limit: 9 });
        const expected = [n, n - 1, n - 2].filter((n) => n > 0).map((n) => `dlv_${n}`);
        expect(items.map(({ deliveryId }) => deliveryId)).toEqual(expected);
        expect(world.store.stats().deliveries).toBe(expected.length);
      }
    });
  });
};
