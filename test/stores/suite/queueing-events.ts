import { describe, expect } from "vitest";
import { eventOrder, news, queueEvent, takeEvents, toldNews, waiting } from "../inbound.ts";
import { testsOn } from "../tests-on.ts";
import { DAY, deliveryOf, type Engine, refusal } from "../world.ts";

const TEXTS = ["", "it happened", "ü 漢 🙂", "a\ud800b", "\u0000\r\n", "x".repeat(100_000)];

export const queueingEventsTests = (engine: Engine): void => {
  const it = testsOn(engine);
  describe("queueing events", () => {
    it("keeps all of an event as it came, waiting, and answers it", async ({ world }) => {
      const metadata = JSON.stringify({ source: "ci", ü: ["漢", null] });
      const order = eventOrder(world, { metadata, caller: "ops ü", delivery: deliveryOf("dlv_1") });
      const { event, replayed } = await world.store.queueEvent(order);
      const { eventId, agent, text } = order;
      const unknown = { endedAt: undefined, turnId: undefined, reason: undefined };
      const of = { eventId, agent, text, metadata, caller: "ops ü", createdAt: world.clock.now(), deliveryId: "dlv_1" };
      expect(event).toEqual({ ...of, ...unknown, status: "queued", attempts: 0, ordinal: event.ordinal });
      expect(replayed).toBe(false);
      expect(await world.store.getEvent(eventId)).toEqual(event);
      expect(await world.store.getEvent("evt_unknown")).toBeUndefined();
    });

    it.for(TEXTS)("keeps a text: %j", async (text, { world }) => {
      for (const metadata of [undefined, "{}"]) {
        const event = await queueEvent(world, { text, metadata });
        expect(await world.store.getEvent(event.eventId)).toMatchObject({ text, metadata });
      }
    });

    it("tells of it on the gateway's stream, and to who watches once it can be read", async ({ world }) => {
      const { eventId } = await queueEvent(world);
      const queued = { name: "event.queued", eventId, agentName: "main" };
      expect(await news(world)).toEqual([queued]);
      await world.hears(({ kind }) => kind === "gateway");
      expect(toldNews(world)).toEqual([{ seq: 1, at: world.clock.now(), ...queued }]);
    });

    it("keeps no more of the gateway's stream than is asked for", async ({ world }) => {
      for (let n = 0; n < 5; n++) await queueEvent(world, { streamKeep: 2 });
      expect(await world.store.readGatewayEntries({ after: 0, limit: 9 })).toMatchObject({ first: 4, last: 5 });
    });

    it("gives each a place behind all before it, whatever their agents and times", async ({ world }) => {
      const ordinals: number[] = [];
      for (const agent of ["main", "other", "main"]) {
        world.clock.jump(-1_000);
        ordinals.push((await queueEvent(world, { agent })).ordinal);
      }
      expect(ordinals[0]).toBeGreaterThan(0);
      expect([...ordinals].sort((a, b) => a - b)).toEqual(ordinals);
      expect(new Set(ordinals).size).toBe(3);
    });

    it("answers a repeat with the first event as it is now, and queues nothing", async ({ world }) => {
      const { eventId } = await queueEvent(world, { key: "k", delivery: deliveryOf("dlv_1") });
      await world.end(await takeEvents(world, [eventId]));
      const order = eventOrder(world, { key: "k", delivery: deliveryOf("dlv_2") });
      const { event, replayed } = await world.store.queueEvent(order);
      expect(event).toEqual(await world.store.getEvent(eventId));
      expect(event).toMatchObject({ eventId, status: "handled", deliveryId: "dlv_1" });
      expect(replayed).toBe(true);
      expect(await world.store.getEvent(order.eventId)).toBeUndefined();
      expect(await world.store.getDelivery("dlv_2")).toBeUndefined();
      expect((await news(world)).filter(({ name }) => name === "event.queued")).toHaveLength(1);
      expect(world.store.stats().eventsQueued).toBe(0);
    });

    it("answers ahead what it would answer a repeat with", async ({ world }) => {
      const find = (key: string, hash: string) => world.store.findEventReplay({ key, hash }, world.clock.now());
      const event = await queueEvent(world, { key: "k", hash: "one" });
      expect(await find("k", "one")).toEqual(event);
      expect(await find("other", "one")).toBeUndefined();
      expect(await refusal(find("k", "two"))).toBe("idempotency-mismatch");
      expect(await refusal(queueEvent(world, { key: "k", hash: "two" }))).toBe("idempotency-mismatch");
      await world.clock.advance(DAY);
      expect(await find("k", "two")).toBeUndefined();
      expect((await queueEvent(world, { key: "k", hash: "two" })).eventId).not.toBe(event.eventId);
      expect((await find("k", "two"))?.eventId).not.toBe(event.eventId);
    });

    it("takes no turn's key for an event's, and the other way about", async ({ world }) => {
      await world.start({ key: "turn" });
      await queueEvent(world, { key: "event" });
      expect(await refusal(queueEvent(world, { key: "turn" }))).toBe("idempotency-mismatch");
      expect(await refusal(world.start({ key: "event" }))).toBe("idempotency-mismatch");
    });

    it("says that the event of a key is not kept any more", async ({ world }) => {
      const { eventId } = await queueEvent(world, { key: "k" });
      await world.end(await takeEvents(world, [eventId]));
      await world.sweep({ eventsBefore: world.clock.now() + 1 });
      expect(await refusal(queueEvent(world, { key: "k" }))).toBe("event-not-found");
    });

    it("queues one event for any number of calls with the same key at once", async ({ world }) => {
      const calls = Array.from({ length: 20 }, () => world.store.queueEvent(eventOrder(world, { key: "k" })));
      const answers = await Promise.all(calls);
      expect(new Set(answers.map(({ event }) => event.eventId)).size).toBe(1);
      expect(answers.filter(({ replayed }) => !replayed)).toHaveLength(1);
      expect(await waiting(world)).toHaveLength(1);
    });

    it("refuses when so many have not ended, whosoever they are, and those that a turn works on are among them", async ({
      world,
    }) => {
      const limits = { events: 3 };
      const { eventId } = await queueEvent(world, { limits });
      const claimed = await takeEvents(world, [eventId]);
      await queueEvent(world, { limits, agent: "other" });
      await queueEvent(world, { limits });
      const refused = eventOrder(world, { limits, key: "k", delivery: deliveryOf("dlv_1") });
      const before = { stats: world.store.stats(), news: await news(world) };
      await expect(world.store.queueEvent(refused)).rejects.toMatchObject({
        name: "gateway-busy",
        extra: { retryAfterMs: expect.any(Number) },
      });
      expect({ stats: world.store.stats(), news: await news(world) }).toEqual(before);
      expect(await world.store.getEvent(refused.eventId)).toBeUndefined();
      expect(await world.store.getDelivery("dlv_1")).toBeUndefined();
      await world.end(claimed);
      expect((await world.store.queueEvent(refused)).replayed).toBe(false);
    });

    it("passes no limit when calls overlap", async ({ world }) => {
      const calls = Array.from({ length: 20 }, () => refusal(queueEvent(world, { limits: { events: 5 } })));
      const outcomes = await Promise.all(calls);
      expect(outcomes.filter((outcome) => outcome === "gateway-busy")).toHaveLength(15);
      expect(world.store.stats().eventsQueued).toBe(5);
    });

    it("refuses when the store is full, of events too, until they have gone", async ({ world }) => {
      const { bytes } = world.store.stats();
      const limits = { storeBytes: bytes + 50_000 };
      const { eventId } = await queueEvent(world, { limits, text: "x".repeat(60_000) });
      expect(await refusal(queueEvent(world, { limits }))).toBe("store-full");
      expect(await refusal(world.start({ limits }))).toBe("store-full");
      await world.end(await takeEvents(world, [eventId]));
      expect(await refusal(queueEvent(world, { limits }))).toBe("store-full");
      await world.sweep({ eventsBefore: world.clock.now() + 1 });
      expect(await refusal(queueEvent(world, { limits }))).toBe("not refused");
    });
  });
};
