import { describe, expect } from "vitest";
import type { SystemEvent } from "#store/store.ts";
import { expectFields } from "../fields.ts";
import { eventOrder, failEvent, news, queueEvent, STREAM_KEEP, takeEvents, toldNews, waiting } from "../inbound.ts";
import { testsOn } from "../tests-on.ts";
import { DAY, deliveryOf, type Engine, refusal, type World } from "../world.ts";

const TEXTS = ["", "it happened", "ü 漢 🙂", "a\ud800b", "\u0000\r\n", "x".repeat(100_000)];

async function queueMany(world: World, count: number, agent = "main"): Promise<SystemEvent[]> {
  const events: SystemEvent[] = [];
  for (let n = 0; n < count; n++) events.push(await queueEvent(world, { agent, text: `${n}` }));
  return events;
}
function idsOf(events: readonly SystemEvent[]): string[] {
  return events.map(({ eventId }) => eventId);
}

/** All ids of a list, page by page. */
async function listed(world: World, query: Omit<Parameters<World["store"]["listEvents"]>[0], "cursor">) {
  const ids: string[] = [];
  for (let cursor: string | undefined; ; ) {
    const page = await world.store.listEvents({ ...query, ...(cursor !== undefined && { cursor }) });
    expect(page.items.length).toBe(page.next === undefined ? page.items.length : query.limit);
    ids.push(...idsOf(page.items));
    if (page.next === undefined) return ids;
    cursor = page.next;
  }
}

export function queueingEventsTests(engine: Engine): void {
  const it = testsOn(engine);
  describe("queueing events", () => {
    it("stores an event completely as waiting, and returns it", async ({ world }) => {
      const metadata = JSON.stringify({ source: "ci", ü: ["漢", null] });
      const order = eventOrder(world, { metadata, caller: "ops ü", delivery: deliveryOf("dlv_1") });
      const { event, replayed } = await world.store.queueEvent(order);
      const { eventId, agent, text } = order;
      const unknown = { endedAt: undefined, turnId: undefined, reason: undefined };
      const of = { eventId, agent, text, metadata, caller: "ops ü", createdAt: world.clock.now(), deliveryId: "dlv_1" };
      const counted = { ordinal: event.ordinal, bytes: expect.any(Number) };
      expect(event).toEqual({ ...of, ...unknown, ...counted, status: "queued", attempts: 0 });
      expect(replayed).toBe(false);
      expect(await world.store.getEvent(eventId)).toEqual(event);
      expect(await world.store.getEvent("evt_unknown")).toBeUndefined();
    });

    it.for(TEXTS)("keeps a text: %j", async (text, { world }) => {
      for (const metadata of [undefined, "{}"]) {
        const event = await queueEvent(world, { text, metadata });
        expectFields(await world.store.getEvent(event.eventId), { text, metadata });
      }
    });

    it("reports it on the gateway's stream, and notifies watchers once it can be read", async ({ world }) => {
      const { eventId } = await queueEvent(world);
      const queued = { name: "event.queued", eventId, agentName: "main" };
      expect(await news(world)).toEqual([queued]);
      await world.hears(({ kind }) => kind === "gateway");
      expect(toldNews(world)).toEqual([{ seq: 1, at: world.clock.now(), ...queued }]);
    });

    it("stores only the given number of entries of the gateway's stream", async ({ world }) => {
      for (let n = 0; n < 5; n++) await queueEvent(world, { streamKeep: 2 });
      expect(await world.store.readGatewayEntries({ after: 0, limit: 9 })).toMatchObject({ first: 4, last: 5 });
    });

    it("gives each event a place behind all earlier ones, whatever their agents and times", async ({ world }) => {
      const ordinals: number[] = [];
      for (const agent of ["main", "other", "main"]) {
        world.clock.jump(-1_000);
        ordinals.push((await queueEvent(world, { agent })).ordinal);
      }
      expect(ordinals[0]).toBeGreaterThan(0);
      expect([...ordinals].sort((a, b) => a - b)).toEqual(ordinals);
      expect(new Set(ordinals).size).toBe(3);
    });

    it("returns the first event in its current state for a repeat, and queues nothing", async ({ world }) => {
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

    it("can find the first event of a repeat before it is called", async ({ world }) => {
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

    it("does not take the key of a turn for the key of an event, and vice versa", async ({ world }) => {
      await world.start({ key: "turn" });
      await queueEvent(world, { key: "event" });
      expect(await refusal(queueEvent(world, { key: "turn" }))).toBe("idempotency-mismatch");
      expect(await refusal(world.start({ key: "event" }))).toBe("idempotency-mismatch");
    });

    it("reports that the event of a key is no longer stored", async ({ world }) => {
      const { eventId } = await queueEvent(world, { key: "k" });
      await world.end(await takeEvents(world, [eventId]));
      await world.sweep({ eventsBefore: world.clock.now() + 1 });
      expect(await refusal(queueEvent(world, { key: "k" }))).toBe("event-not-found");
    });

    it("refuses events at the limit of unfinished ones of all agents, which includes those in a turn", async ({
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

    it("refuses events in a full store, which also counts events, until there is room", async ({ world }) => {
      const { bytes } = world.store.stats();
      const limits = { storeBytes: bytes + 50_000 };
      const { eventId } = await queueEvent(world, { limits, text: "x".repeat(60_000) });
      expect(await refusal(queueEvent(world, { limits }))).toBe("store-full");
      expect(await refusal(world.start({ limits }))).toBe("store-full");
      const claimed = await takeEvents(world, [eventId]);
      await world.end(claimed);
      await world.store.deleteSession(claimed.claim.sessionId, world.clock.now());
      expect(await refusal(queueEvent(world, { limits }))).toBe("store-full");
      await world.sweep({ eventsBefore: world.clock.now() + 1 });
      expect(await refusal(queueEvent(world, { limits }))).toBe("not refused");
    });
  });

  describe("reading events", () => {
    it("returns the waiting events of an agent, oldest first, up to a limit", async ({ world }) => {
      const events = await queueMany(world, 5);
      const others = await queueMany(world, 2, "other");
      expect(await waiting(world)).toEqual(idsOf(events));
      expect(await waiting(world, { limit: 2 })).toEqual(idsOf(events.slice(0, 2)));
      expect(await waiting(world, { agent: "other" })).toEqual(idsOf(others));
      expect(await waiting(world, { agent: "unknown" })).toEqual([]);
      expect(
        await world.store.readQueuedEvents({ agent: "main", after: 0, through: 1e9, limit: 9, bytes: 1e9 }),
      ).toEqual(events);
    });

    it("returns those after one place, up to another place", async ({ world }) => {
      const events = await queueMany(world, 5);
      const [, second, , fourth] = events;
      const range = { after: second?.ordinal ?? 0, through: fourth?.ordinal ?? 0 };
      expect(await waiting(world, range)).toEqual(idsOf(events.slice(2, 4)));
      expect(await waiting(world, { after: events[4]?.ordinal ?? 0 })).toEqual([]);
    });

    it("returns a limited number of bytes of text and metadata, but always the first event", async ({ world }) => {
      const [first, second, third] = [
        await queueEvent(world, { text: "ü".repeat(50) }),
        await queueEvent(world, { text: "x".repeat(60), metadata: `"${"y".repeat(38)}"` }),
        await queueEvent(world, { text: "z" }),
      ];
      expect(await waiting(world, { bytes: 1 })).toEqual([first.eventId]);
      expect(await waiting(world, { bytes: 199 })).toEqual([first.eventId]);
      expect(await waiting(world, { bytes: 200 })).toEqual([first.eventId, second.eventId]);
      expect(await waiting(world, { bytes: 201 })).toEqual(idsOf([first, second, third]));
    });

    it("omits those that a turn works on, and those that ended", async ({ world }) => {
      const events = await queueMany(world, 4);
      const [first, second, third, fourth] = idsOf(events) as [string, string, string, string];
      await world.end(await takeEvents(world, [first]));
      await takeEvents(world, [second]);
      expect(await waiting(world)).toEqual([third, fourth]);
      expect(await waiting(world, { limit: 1 })).toEqual([third]);
    });

    it("lists all, the most recently queued first, page by page, with any filter by state and agent", async ({
      world,
    }) => {
      const mine = idsOf(await queueMany(world, 5));
      const [first, second, third, fourth] = mine as [string, string, string, string];
      const others = idsOf(await queueMany(world, 2, "other"));
      await world.end(await takeEvents(world, [first, second]));
      await failEvent(world, third, 3);
      await takeEvents(world, [fourth]);
      const newest = [...mine, ...others].reverse();
      for (const limit of [1, 2, 3, 7, 100]) {
        expect(await listed(world, { limit })).toEqual(newest);
        expect(await listed(world, { limit, agent: "main" })).toEqual([...mine].reverse());
        expect(await listed(world, { limit, status: "handled" })).toEqual([second, first]);
        expect(await listed(world, { limit, status: "dead" })).toEqual([third]);
        expect(await listed(world, { limit, status: "queued", agent: "main" })).toEqual(mine.slice(3).reverse());
        expect(await listed(world, { limit, status: "dead", agent: "other" })).toEqual([]);
      }
      expect((await world.store.listEvents({ limit: 1, status: "dead" })).items).toEqual([
        await world.store.getEvent(third),
      ]);
    });

    it("ends a page when it has a MiB", async ({ world }) => {
      const ids: string[] = [];
      for (let n = 0; n < 30; n++) ids.unshift((await queueEvent(world, { text: "x".repeat(100_000) })).eventId);
      const listed: string[] = [];
      for (let cursor: string | undefined; ; ) {
        const { items, next } = await world.store.listEvents({ limit: 500, ...(cursor !== undefined && { cursor }) });
        listed.push(...idsOf(items));
        if (next === undefined) break;
        expect(items).toHaveLength(11);
        cursor = next;
      }
      expect(listed).toEqual(ids);
    });

    it("continues after a cursor whatever is added and erased meanwhile", async ({ world }) => {
      const [first, second, third, fourth] = idsOf(await queueMany(world, 4)) as [string, string, string, string];
      const { items, next } = await world.store.listEvents({ limit: 2 });
      expect(idsOf(items)).toEqual([fourth, third]);
      await queueMany(world, 2);
      await world.end(await takeEvents(world, [first]));
      await failEvent(world, second, 3);
      await world.end(await takeEvents(world, [third]));
      await world.store.requeueEvent(second, { now: world.clock.now(), beatNow: false, streamKeep: STREAM_KEEP });
      expect(idsOf((await world.store.listEvents({ limit: 9, cursor: next ?? "" })).items)).toEqual([first]);
      await world.sweep({ eventsBefore: world.clock.now() + 1 });
      expect((await world.store.listEvents({ limit: 9, cursor: next ?? "" })).items).toEqual([]);
      for (const cursor of ["", "x", "c0", "c-1", "C1", "c1 "]) {
        expect(await refusal(world.store.listEvents({ limit: 1, cursor }))).toBe("invalid-params");
      }
    });

    it("lists an event that was queued again as the newest", async ({ world }) => {
      const [first, second] = idsOf(await queueMany(world, 2)) as [string, string];
      await failEvent(world, first, 3);
      await world.store.requeueEvent(first, { now: world.clock.now(), beatNow: false, streamKeep: STREAM_KEEP });
      expect(await listed(world, { limit: 1 })).toEqual([first, second]);
      expect(await waiting(world)).toEqual([second, first]);
    });

    it("counts the unfinished events, the dead ones, and the waiting ones of each agent", async ({ world }) => {
      const [first, second, third] = idsOf(await queueMany(world, 3)) as [string, string, string];
      await queueMany(world, 1, "other");
      const counts = () => {
        const { eventsQueued, eventsDead } = world.store.stats();
        return [eventsQueued, eventsDead, world.store.agentCounts("main").waitingEvents];
      };
      expect(counts()).toEqual([4, 0, 3]);
      const claimed = await takeEvents(world, [first, second]);
      expect(counts()).toEqual([4, 0, 1]);
      await world.end(claimed, { status: "failed" });
      expect(counts()).toEqual([4, 0, 3]);
      await world.end(await takeEvents(world, [first]));
      expect(counts()).toEqual([3, 0, 2]);
      await failEvent(world, second, 2);
      expect(counts()).toEqual([2, 1, 1]);
      await world.store.requeueEvent(second, { now: world.clock.now(), beatNow: false, streamKeep: STREAM_KEEP });
      expect(counts()).toEqual([3, 0, 2]);
      await world.end(await takeEvents(world, [third, second]));
      expect(counts()).toEqual([1, 0, 0]);
      expect(world.store.agentCounts("other").waitingEvents).toBe(1);
      await world.store.failQueuedEvents("other", "gone", { now: world.clock.now(), streamKeep: 1, limit: 9 });
      expect(counts()).toEqual([0, 1, 0]);
      await world.sweep({ eventsBefore: world.clock.now() + 1 });
      expect(counts()).toEqual([0, 0, 0]);
    });
  });
}
