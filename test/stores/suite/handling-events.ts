import { describe, expect } from "vitest";
import type { ClaimedTurn, GatewayNews } from "#store/store.ts";
import { expectFields } from "../fields.ts";
import {
  eventOrder,
  failEvent,
  news,
  planBeat,
  queueEvent,
  STREAM_KEEP,
  startBeat,
  takeEvents,
  toldNews,
  waiting,
} from "../inbound.ts";
import { testsOn } from "../tests-on.ts";
import { deliveryOf, type Engine, LEASE_MS, LOST, type World } from "../world.ts";

async function ofEvent(world: World, eventId: string): Promise<GatewayNews[]> {
  return (await news(world)).filter((one) => "eventId" in one && one.eventId === eventId);
}

function requeue(world: World, eventId: string, beatNow = false) {
  return world.store.requeueEvent(eventId, { now: world.clock.now(), beatNow, streamKeep: STREAM_KEEP });
}

function giveUp(world: World, agent: string, limit = 100) {
  return world.store.failQueuedEvents(agent, "The agent is gone.", {
    now: world.clock.now(),
    streamKeep: STREAM_KEEP,
    limit,
  });
}

export function handlingEventsTests(engine: Engine): void {
  const it = testsOn(engine);
  describe("handling events", () => {
    it("binds events to the turn that takes them, so that no other turn can take them", async ({ world }) => {
      const { eventId } = await queueEvent(world);
      const { turnId } = (await takeEvents(world, [eventId])).claim;
      const taken = { status: "queued", attempts: 0, turnId, endedAt: undefined } as const;
      expectFields(await world.store.getEvent(eventId), taken);
      expectFields((await world.store.listEvents({ limit: 1 })).items[0], taken);
      expect((await startBeat(world)).outcome).toBe("not-due");
      expect(await waiting(world)).toEqual([]);
    });

    it("leaves events that arrive during the turn, and events of other agents, to other turns", async ({ world }) => {
      const taken = await queueEvent(world);
      await queueEvent(world, { agent: "other" });
      const claimed = await takeEvents(world, [taken.eventId]);
      const later = await queueEvent(world);
      expect(later.ordinal).toBeGreaterThan(taken.ordinal);
      expect(await world.store.getEvent(later.eventId)).toEqual(later);
      expect(await waiting(world)).toEqual([later.eventId]);
      await world.end(claimed, { status: "failed" });
      expect(await waiting(world)).toEqual([taken.eventId, later.eventId]);
      expect(await waiting(world, { agent: "other" })).toHaveLength(1);
    });

    it("returns the event with its turn to a repeated request", async ({ world }) => {
      const { eventId } = await queueEvent(world, { key: "k" });
      const { turnId } = (await takeEvents(world, [eventId])).claim;
      const order = eventOrder(world, { key: "k" });
      expect(await world.store.queueEvent(order)).toMatchObject({ event: { eventId, turnId }, replayed: true });
    });

    it("handles them when the turn completes, in the same transaction", async ({ world }) => {
      const ids = [(await queueEvent(world)).eventId, (await queueEvent(world)).eventId];
      const claimed = await takeEvents(world, ids);
      await world.clock.advance(1_000);
      world.told.length = 0;
      await world.end(claimed);
      const { turnId } = claimed.claim;
      const endedAt = world.clock.now();
      for (const eventId of ids) {
        const event = await world.store.getEvent(eventId);
        expectFields(event, { status: "handled", attempts: 0, turnId, endedAt, reason: undefined });
        expect((await ofEvent(world, eventId)).at(-1)).toEqual({
          name: "event.handled",
          eventId,
          agentName: "main",
          turnId,
        });
      }
      await world.hears(({ kind }) => kind === "gateway");
      expect(toldNews(world).map(({ seq, name }) => [seq, name])).toEqual([
        [3, "event.handled"],
        [4, "event.handled"],
      ]);
      expect(world.store.stats().eventsQueued).toBe(0);
    });

    it.for([
      ["failed", { status: "failed", error: { name: "turn-timeout", detail: "too slow ü" } }, "too slow ü"],
      [
        "failed without a word",
        { status: "failed", error: { name: "turn-timeout", detail: undefined } },
        "turn-timeout",
      ],
      ["was cancelled", { status: "cancelled" }, "The turn was cancelled."],
    ] as const)(
      "returns an event with one more attempt to its old place when its turn %s",
      async ([, how, reason], { world }) => {
        const event = await queueEvent(world, { metadata: "{}", delivery: deliveryOf("dlv_1") });
        const behind = await queueEvent(world);
        const claimed = await takeEvents(world, [event.eventId]);
        await world.end(claimed, how);
        const { turnId } = claimed.claim;
        expect(await world.store.getEvent(event.eventId)).toEqual({ ...event, attempts: 1, turnId, reason });
        expect(await waiting(world)).toEqual([event.eventId, behind.eventId]);
        expect(await ofEvent(world, event.eventId)).toHaveLength(1);
        expect((await world.store.getDelivery("dlv_1"))?.steps).toEqual([
          {
            at: world.clock.now(),
            name: "event.returned",
            detail: JSON.stringify({ turn_id: turnId, attempts: 1, reason }),
          },
        ]);
      },
    );

    it("makes an event dead after the maximum number of failed turns, and the stream reports the reason", async ({
      world,
    }) => {
      const { eventId } = await queueEvent(world);
      await failEvent(world, eventId, 2);
      expect(await world.store.getEvent(eventId)).toMatchObject({ status: "queued", attempts: 2 });
      const claimed = await takeEvents(world, [eventId]);
      await world.end(claimed, { status: "failed", error: { name: "turn-failed", detail: "it broke" } });
      const { turnId } = claimed.claim;
      const dead = { status: "dead", attempts: 3, reason: "it broke", turnId, endedAt: world.clock.now() };
      expect(await world.store.getEvent(eventId)).toMatchObject(dead);
      expect((await ofEvent(world, eventId)).slice(1)).toEqual([
        { name: "event.dead", eventId, agentName: "main", attempts: 3, reason: "it broke" },
      ]);
      expect(await waiting(world)).toEqual([]);
    });

    it("leaves an event with its turn while the turn waits for a retry", async ({ world }) => {
      const { eventId } = await queueEvent(world);
      const claimed = await takeEvents(world, [eventId]);
      await world.release(claimed, 1_000);
      expect(await waiting(world)).toEqual([]);
      await world.clock.advance(1_000);
      await world.end(await world.claimNext());
      expect(await world.store.getEvent(eventId)).toMatchObject({ status: "handled", attempts: 0 });
    });

    it("returns an event once, also if an end of its turn arrives late", async ({ world }) => {
      const { eventId } = await queueEvent(world);
      const slow = await takeEvents(world, [eventId]);
      await world.clock.advance(LEASE_MS);
      await world.sweep({ maxAttempts: 1 });
      expect(await world.store.getEvent(eventId)).toMatchObject({ attempts: 1, reason: LOST.detail });
      expect(await world.end(slow)).toBe(false);
      expect(await world.store.getEvent(eventId)).toMatchObject({ status: "queued", attempts: 1 });
      expect(await waiting(world)).toEqual([eventId]);
    });

    it.for<[string, (world: World, claimed: ClaimedTurn) => Promise<unknown>]>([
      ["its session is deleted while it runs", ({ store, clock }) => store.deleteSession("beat:1", clock.now())],
      [
        "its session is deleted while it waits",
        async (world, claimed) => {
          await world.release(claimed);
          await world.store.deleteSession("beat:1", world.clock.now());
        },
      ],
      [
        "it is cancelled while it waits",
        async (world, claimed) => {
          await world.release(claimed);
          await world.store.cancelTurn(claimed.claim.turnId, world.clock.now());
        },
      ],
      [
        "its agent's turns are failed",
        async (world, claimed) => {
          await world.release(claimed);
          await world.store.failQueuedTurns("main", { name: "agent-removed", detail: "gone" }, world.clock.now());
        },
      ],
    ])("returns an event to the queue when %s", async ([, act], { world }) => {
      const { eventId } = await queueEvent(world, { delivery: deliveryOf("dlv_1") });
      const claimed = await takeEvents(world, [eventId], { session: "beat:1" });
      await act(world, claimed);
      expect((await world.store.getDelivery("dlv_1"))?.steps).toMatchObject([{ name: "event.returned" }]);
      const event = await world.store.getEvent(eventId);
      expect(event).toMatchObject({ status: "queued", attempts: 1, turnId: claimed.claim.turnId });
      expect(event?.reason).toEqual(expect.stringMatching(/./));
      expect(await waiting(world)).toEqual([eventId]);
      expect(await world.end(claimed)).toBe(false);
      expect(await world.store.getEvent(eventId)).toEqual(event);
    });

    it("makes an event without further attempts dead when its turn's session is deleted, and notifies watchers", async ({
      world,
    }) => {
      const { eventId } = await queueEvent(world);
      await takeEvents(world, [eventId], { session: "beat:1", maxAttempts: 1 });
      world.told.length = 0;
      await world.store.deleteSession("beat:1", world.clock.now());
      await world.hears(({ kind }) => kind === "gateway");
      expect(toldNews(world)).toMatchObject([{ seq: 2, name: "event.dead", eventId, attempts: 1 }]);
      expect(await world.store.getEvent(eventId)).toMatchObject({ status: "dead" });
    });
  });

  describe("events that ended", () => {
    it("are queued again after they were dead, behind all others and with no counted attempts", async ({ world }) => {
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
      await world.end(await takeEvents(world, [behind.eventId]));
      await failEvent(world, event.eventId, 3);
      expect(await world.store.getEvent(event.eventId)).toMatchObject({ status: "dead", attempts: 3 });
      await world.sweep({ eventsBefore: world.clock.now() + 1 });
      expect(await world.store.getEvent(event.eventId)).toBeUndefined();
    });

    it("do not change if an event is queued again that is not dead", async ({ world }) => {
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

    it("include waiting events of an agent that were failed, the oldest first and in batches, with the reason", async ({
      world,
    }) => {
      const ids: string[] = [];
      for (let n = 0; n < 4; n++) ids.push((await queueEvent(world)).eventId);
      const other = await queueEvent(world, { agent: "other" });
      await takeEvents(world, [ids[0] as string]);
      expect(await giveUp(world, "main", 2)).toBe(2);
      expect(await waiting(world)).toEqual([ids[3]]);
      expect(await giveUp(world, "main", 2)).toBe(1);
      expect(await giveUp(world, "main", 2)).toBe(0);
      const reason = "The agent is gone.";
      const dead = { status: "dead", attempts: 0, reason, endedAt: world.clock.now() };
      for (const n of [1, 2, 3]) expect(await world.store.getEvent(ids[n] as string)).toMatchObject(dead);
      expect(await world.store.getEvent(ids[0] as string)).toMatchObject({ status: "queued" });
      expect(await waiting(world, { agent: "other" })).toEqual([other.eventId]);
      const told = (await news(world)).filter(({ name }) => name === "event.dead");
      expect(told).toEqual(
        [1, 2, 3].map((n) => ({ name: "event.dead", eventId: ids[n], agentName: "main", attempts: 0, reason })),
      );
    });

    it("can be read after their end until their retention ends, and always while they wait", async ({ world }) => {
      const [handled, dead, taken, open] = [
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
          [handled, dead, taken, open].map(({ eventId }) => world.store.getEvent(eventId)),
        );
        return events.map((event) => event !== undefined);
      };
      await world.sweep({ eventsBefore: world.clock.now() });
      expect(await kept()).toEqual([true, true, true, true]);
      await world.sweep({ eventsBefore: world.clock.now() + 1 });
      expect(await kept()).toEqual([false, false, true, true]);
      expect((await world.store.listEvents({ limit: 9 })).items).toHaveLength(2);
    });

    it("are erased in slices, however many there are", async ({ world }) => {
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

    it("release their deliveries for deletion only when they have ended", async ({ world }) => {
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

    it("erase the deliveries of turns that end together one turn after another", async ({ world }) => {
      const recorder = { entries: 3, bytes: 1e9, refused: 2 };
      const start = (name: string) =>
        world.start({ session: `chat:${name}`, delivery: deliveryOf(`dlv_${name}`), recorder });
      await start("one");
      for (const n of [1, 2]) await queueEvent(world, { delivery: deliveryOf(`dlv_event_${n}`), recorder });
      await planBeat(world, 0);
      expect(await startBeat(world, { batch: { maxAttempts: 1 } })).toMatchObject({ outcome: "started" });
      await start("two");
      await world.store.failQueuedTurns("main", LOST, world.clock.now());
      const gone: string[] = [];
      const ended = ["dlv_one", "dlv_event_1", "dlv_event_2", "dlv_two"];
      // The first one makes room for those that could not be erased before.
      for (let n = 0; n < 3; n++) {
        await world.store.recordDelivery({ ...deliveryOf(`dlv_more_${n}`), answer: "unmatched" }, recorder);
        for (const id of ended) if (!gone.includes(id) && !(await world.store.getDelivery(id))) gone.push(id);
        expect(gone).toEqual(ended.slice(0, n + 2));
      }
    });

    it("release a delivery once, even if its event ended twice", async ({ world }) => {
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
}
