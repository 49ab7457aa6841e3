import { describe, expect, it } from "vitest";
import type { Delivery, DeliveryOutcome, DeliveryQuery, DeliveryStep } from "#store/store.ts";
import { failEvent, queueEvent, takeEvents } from "../inbound.ts";
import { deliveryOf, type Engine, openWorld, RECORDER, refusal, type World } from "../world.ts";

const STEPS: DeliveryStep[] = [
  { at: 1, name: "token.accepted", detail: JSON.stringify({ name: "shared ü" }) },
  { at: 2, name: "challenge.answered", detail: undefined },
];

/** A webhook's delivery with all that one can have. */
const hookOf = (deliveryId: string, wish: Partial<Delivery> = {}): Delivery => ({
  ...deliveryOf(deliveryId),
  at: 1_000,
  surface: "hooks",
  operation: "hooks.mappedByName",
  path: "/hooks/github-push",
  requestId: `req_of_${deliveryId}`,
  caller: "shared",
  headers: "content-type: application/json\nx-ü: 漢",
  mapping: "github-push",
  senderId: "72d3162e-cc78-11e3-81ab-4c9367dc0958",
  replayOf: "dlv_before",
  status: 200,
  steps: STEPS,
  ...wish,
});

const record = (world: World, delivery: Delivery, refused = 1_000, entries = 1_000) =>
  world.store.recordDelivery(delivery, { ...RECORDER, entries, refused });

const outcomeOf = async (world: World, deliveryId: string): Promise<DeliveryOutcome | undefined> =>
  (await world.store.getDelivery(deliveryId))?.outcome;

const list = async (world: World, query: Partial<DeliveryQuery> = {}): Promise<string[]> =>
  (await world.store.listDeliveries({ limit: 100, ...query })).items.map(({ deliveryId }) => deliveryId);

/** All that a list gives, page by page. */
const pages = async (world: World, query: DeliveryQuery): Promise<string[]> => {
  const ids: string[] = [];
  for (let cursor: string | undefined; ; ) {
    const page = await world.store.listDeliveries({ ...query, ...(cursor !== undefined && { cursor }) });
    ids.push(...page.items.map(({ deliveryId }) => deliveryId));
    if (page.next === undefined) return ids;
    expect(page.items).toHaveLength(query.limit);
    cursor = page.next;
  }
};

export const deliveriesTests = (engine: Engine): void => {
  describe("recorded requests", () => {
    it.each(["repeated", "unmatched", "refused", "challenge"] as const)(
      "keeps all of one that started nothing, as it was answered: %s",
      async (answer) => {
        await using world = await openWorld(engine);
        const delivery = hookOf("dlv_1", { answer, body: new Uint8Array([0, 255, 128]) });
        await record(world, delivery);
        const nothing = { turnId: undefined, sessionId: undefined, eventId: undefined };
        const kept = await world.store.getDelivery("dlv_1");
        expect({ ...kept, body: undefined }).toEqual({ ...delivery, ...nothing, outcome: answer, body: undefined });
        expect(Buffer.from(kept?.body ?? [])).toEqual(Buffer.from([0, 255, 128]));
        expect(await world.store.getDelivery("dlv_unknown")).toBeUndefined();
      },
    );

    it("keeps one that has nothing of what only some have", async () => {
      await using world = await openWorld(engine);
      const none = { mapping: undefined, senderId: undefined, replayOf: undefined, status: undefined, body: undefined };
      const delivery = hookOf("dlv_1", { ...none, steps: [], headers: "", answer: "refused", caller: "" });
      await record(world, delivery);
      expect(await world.store.getDelivery("dlv_1")).toMatchObject(delivery);
    });

    it("shows the turn or event that one repeats", async () => {
      await using world = await openWorld(engine);
      const { turnId } = await world.start();
      const { eventId } = await queueEvent(world);
      const of = [{ turnId, sessionId: "chat:a" }, { eventId }];
      for (const [n, work] of of.entries()) {
        await world.store.recordDelivery(hookOf(`dlv_${n}`, { answer: "repeated" }), RECORDER, work);
        expect(await world.store.getDelivery(`dlv_${n}`)).toMatchObject({ ...work, outcome: "repeated" });
      }
      expect(await list(world, { id: turnId })).toEqual(["dlv_0"]);
      expect(await list(world, { id: eventId })).toEqual(["dlv_1"]);
    });

    it("keeps refused ones in a ring of their own, so that strangers push out nothing else", async () => {
      await using world = await openWorld(engine);
      await record(world, hookOf("dlv_kept", { answer: "unmatched" }), 3, 1);
      for (let n = 0; n < 5; n++) await record(world, hookOf(`dlv_${n}`, { answer: "refused" }), 3, 1);
      expect(await list(world)).toEqual(["dlv_4", "dlv_3", "dlv_2", "dlv_kept"]);
      await record(world, hookOf("dlv_next", { answer: "challenge" }), 3, 1);
      expect(await list(world)).toEqual(["dlv_next", "dlv_4", "dlv_3", "dlv_2"]);
      expect(world.store.stats().deliveries).toBe(4);
    });

    it("keeps no more bytes of refused ones than a part of all", async () => {
      await using world = await openWorld(engine);
      const body = Buffer.alloc(10_000);
      const limits = { entries: 1_000, bytes: 200_000, refused: 1_000 };
      for (let n = 0; n < 100; n++) {
        await world.store.recordDelivery(hookOf(`dlv_${n}`, { answer: "refused", body }), limits);
      }
      expect(world.store.stats().deliveryBytes).toBeLessThan(100_000);
      expect(await list(world, { limit: 1 })).toEqual(["dlv_99"]);
    });

    it("tells what became of its turn, at every step", async () => {
      await using world = await openWorld(engine);
      const told: (string | undefined)[] = [];
      const start = async (n: number) => {
        await world.start({ session: `chat:${n}`, delivery: hookOf(`dlv_${n}`) });
        told.push(await outcomeOf(world, `dlv_${n}`));
        const claimed = await world.claimNext();
        told.push(await outcomeOf(world, `dlv_${n}`));
        return claimed;
      };
      for (const [n, status] of (["completed", "failed", "cancelled"] as const).entries()) {
        await world.end(await start(n), { status });
        told.push(await outcomeOf(world, `dlv_${n}`));
      }
      const step = ["queued", "running"];
      expect(told).toEqual([...step, "completed", ...step, "failed", ...step, "cancelled"]);
      const turn = (await world.entries("chat:0"))[0]?.turnId;
      expect(await world.store.getDelivery("dlv_0")).toMatchObject({ turnId: turn, sessionId: "chat:0" });
    });

    it("tells what became of its event, also when that is queued again, until it is not kept any more", async () => {
      await using world = await openWorld(engine);
      const { eventId } = await queueEvent(world, { delivery: hookOf("dlv_1") });
      const told = [await outcomeOf(world, "dlv_1")];
      const claimed = await takeEvents(world, [eventId]);
      told.push(await outcomeOf(world, "dlv_1"));
      await world.end(claimed, { status: "failed" });
      told.push(await outcomeOf(world, "dlv_1"));
      await failEvent(world, eventId, 2);
      told.push(await outcomeOf(world, "dlv_1"));
      await world.store.requeueEvent(eventId, { now: world.clock.now(), beatNow: false, streamKeep: 10 });
      told.push(await outcomeOf(world, "dlv_1"));
      await world.end(await takeEvents(world, [eventId]));
      told.push(await outcomeOf(world, "dlv_1"));
      await world.sweep({ eventsBefore: world.clock.now() + 1 });
      told.push(await outcomeOf(world, "dlv_1"));
      expect(told).toEqual(["queued", "queued", "queued", "dead", "queued", "handled", "gone"]);
      expect(await world.store.getDelivery("dlv_1")).toMatchObject({ eventId, turnId: undefined, answer: "accepted" });
    });

    it("adds steps behind those that it came with, whatever has become of it", async () => {
      await using world = await openWorld(engine);
      const steps = Array.from({ length: 3 }, (_, n) => ({
        at: 10 + n,
        name: "announcement.retried",
        detail: `{"n":${n}}`,
      }));
      await world.start({ delivery: hookOf("dlv_1") });
      await world.store.addDeliveryStep("dlv_1", steps[0] as DeliveryStep);
      await world.end(await world.claimNext());
      await world.store.addDeliveryStep("dlv_1", steps[1] as DeliveryStep);
      await record(world, { ...deliveryOf("dlv_2"), answer: "refused" });
      await world.store.addDeliveryStep("dlv_2", steps[2] as DeliveryStep);
      await world.store.addDeliveryStep("dlv_unknown", steps[2] as DeliveryStep);
      const expected = { ...hookOf("dlv_1"), steps: [...STEPS, ...steps.slice(0, 2)], outcome: "completed" };
      expect(await world.store.getDelivery("dlv_1")).toMatchObject(expected);
      expect(await world.store.getDelivery("dlv_2")).toMatchObject({
        ...deliveryOf("dlv_2"),
        answer: "refused",
        steps: steps.slice(2),
      });
      expect(await list(world)).toEqual(["dlv_2", "dlv_1"]);
    });

    it("keeps both of two steps that are added at once", async () => {
      await using world = await openWorld(engine);
      await world.start({ delivery: deliveryOf("dlv_1") });
      const add = (at: number) => world.store.addDeliveryStep("dlv_1", { at, name: "a.b", detail: undefined });
      await Promise.all([1, 2, 3, 4, 5].map(add));
      const steps = (await world.store.getDelivery("dlv_1"))?.steps ?? [];
      expect(steps.map(({ at }) => at).sort()).toEqual([1, 2, 3, 4, 5]);
    });

    it("keeps no more than two hundred steps of one", async () => {
      await using world = await openWorld(engine);
      await world.start({ delivery: deliveryOf("dlv_1") });
      for (let at = 0; at < 210; at++)
        await world.store.addDeliveryStep("dlv_1", { at, name: "a.b", detail: undefined });
      expect((await world.store.getDelivery("dlv_1"))?.steps).toHaveLength(200);
    });

    it("says that its work is gone when its session is deleted, and keeps nothing of what came or was made of it", async () => {
      await using world = await openWorld(engine);
      await world.start({ delivery: hookOf("dlv_ended", { body: Buffer.from("secret") }) });
      await world.end(await world.claimNext());
      const { turnId } = await world.start({ delivery: hookOf("dlv_running", { body: Buffer.from("secret") }) });
      await world.claimNext();
      await world.start({ delivery: hookOf("dlv_queued", { body: Buffer.from("secret") }) });
      const work = { turnId, sessionId: "chat:a" };
      await world.store.recordDelivery(hookOf("dlv_repeat", { answer: "repeated" }), RECORDER, work);
      await world.store.deleteSession("chat:a", world.clock.now());
      const steps = STEPS.map((step) => ({ ...step, detail: undefined }));
      for (const id of ["dlv_ended", "dlv_running", "dlv_queued"]) {
        const erased = { ...hookOf(id), body: undefined, steps, outcome: "gone", answer: "accepted" };
        expect(await world.store.getDelivery(id)).toMatchObject(erased);
      }
      expect(await world.store.getDelivery("dlv_repeat")).toMatchObject({
        outcome: "repeated",
        body: undefined,
        steps,
      });
      expect((await list(world, { outcome: "gone" })).sort()).toEqual(["dlv_ended", "dlv_queued", "dlv_running"]);
    });

    it("says so at once of a session that was long, too", async () => {
      await using world = await openWorld(engine);
      const count = 300;
      for (let n = 0; n < count; n++) {
        await world.start({ delivery: hookOf(`dlv_${n}`, { body: Buffer.from("secret") }) });
        await world.end(await world.claimNext());
      }
      await world.store.deleteSession("chat:a", world.clock.now());
      // Another that has its id has nothing to do with it.
      await world.start({ delivery: hookOf("dlv_new") });
      const first = await world.store.getDelivery("dlv_0");
      expect(first).toMatchObject({ outcome: "gone", body: undefined });
      expect(first?.steps.map(({ detail }) => detail)).toEqual([undefined, undefined]);
      expect(await list(world, { outcome: "gone", limit: 1_000 })).toHaveLength(count);
      await world.sweep();
      expect(await list(world, { outcome: "gone", limit: 1_000 })).toHaveLength(count);
      expect(await world.store.getDelivery("dlv_0")).toEqual(first);
      expect(await outcomeOf(world, "dlv_new")).toBe("queued");
    });

    it("counts what it holds past its bytes against the store's, as the work of so much is unfinished", async () => {
      await using world = await openWorld(engine);
      const recorder = { entries: 1_000, bytes: 50_000, refused: 10 };
      const limits = { storeBytes: world.store.stats().bytes + 100_000 };
      const body = Buffer.alloc(20_000);
      let kept = 0;
      while (kept < 100) {
        const delivery = hookOf(`dlv_${kept}`, { body });
        if ((await refusal(queueEvent(world, { recorder, limits, delivery }))) === "store-full") break;
        kept++;
      }
      expect(kept).toBeGreaterThan(2);
      expect(kept).toBeLessThan(9);
      await world.store.failQueuedEvents("main", "gone", { now: world.clock.now(), streamKeep: 10, limit: 100 });
      await world.store.recordDelivery(hookOf("dlv_next", { answer: "unmatched" }), recorder);
      expect(await refusal(queueEvent(world, { recorder, limits }))).toBe("not refused");
    });
  });

  describe("listing recorded requests", () => {
    it("gives the newest first, without their headers, bodies and steps", async () => {
      await using world = await openWorld(engine);
      await world.start({ delivery: hookOf("dlv_1") });
      await record(world, hookOf("dlv_2", { answer: "refused" }));
      const { eventId } = await queueEvent(world, { delivery: hookOf("dlv_3") });
      const { items, next } = await world.store.listDeliveries({ limit: 10 });
      const [third, second, first] = items;
      const short = { headers: "", body: undefined, steps: [] };
      expect(first).toEqual({ ...(await world.store.getDelivery("dlv_1")), ...short });
      expect(second).toEqual({ ...(await world.store.getDelivery("dlv_2")), ...short });
      expect(third).toEqual({ ...(await world.store.getDelivery("dlv_3")), ...short });
      expect(third).toMatchObject({ eventId, outcome: "queued", mapping: "github-push", status: 200 });
      expect(next).toBeUndefined();
    });

    it("gives those that match: by surface, outcome, mapping, session, time, and all of them together", async () => {
      await using world = await openWorld(engine);
      await world.start({ session: "chat:a", delivery: { ...deliveryOf("dlv_rest"), at: 10 } });
      await world.end(await world.claimNext());
      await world.start({ session: "chat:b", delivery: hookOf("dlv_hook", { at: 20, mapping: "one" }) });
      await record(world, hookOf("dlv_unmatched", { at: 30, mapping: "two", answer: "unmatched" }));
      await record(world, hookOf("dlv_refused", { at: 40, mapping: undefined, answer: "refused" }));
      const event = await queueEvent(world, { delivery: hookOf("dlv_event", { at: 50, mapping: undefined }) });
      const all = ["dlv_event", "dlv_refused", "dlv_unmatched", "dlv_hook", "dlv_rest"];
      expect(await list(world)).toEqual(all);
      expect(await list(world, { surface: "rest" })).toEqual(["dlv_rest"]);
      expect(await list(world, { surface: "rpc" })).toEqual([]);
      expect(await list(world, { outcome: "queued" })).toEqual(["dlv_event", "dlv_hook"]);
      expect(await list(world, { outcome: "completed" })).toEqual(["dlv_rest"]);
      expect(await list(world, { outcome: "refused" })).toEqual(["dlv_refused"]);
      expect(await list(world, { outcome: "gone" })).toEqual([]);
      expect(await list(world, { mapping: "one" })).toEqual(["dlv_hook"]);
      expect(await list(world, { mapping: "on" })).toEqual([]);
      expect(await list(world, { sessionId: "chat:b" })).toEqual(["dlv_hook"]);
      expect(await list(world, { from: 20, to: 40 })).toEqual(["dlv_unmatched", "dlv_hook"]);
      expect(await list(world, { from: 41 })).toEqual(["dlv_event"]);
      expect(await list(world, { to: 10 })).toEqual([]);
      expect(await list(world, { surface: "hooks", outcome: "queued", from: 30 })).toEqual(["dlv_event"]);
      expect(await list(world, { mapping: "two", outcome: "queued" })).toEqual([]);
      // The turn of the other session goes first.
      await world.claim();
      await world.end(await takeEvents(world, [event.eventId]));
      expect(await list(world, { outcome: "running" })).toEqual(["dlv_hook"]);
      expect(await list(world, { outcome: "handled" })).toEqual(["dlv_event"]);
    });

    it("finds one by any id that it has, and by nothing else", async () => {
      await using world = await openWorld(engine);
      const { turnId } = await world.start({
        session: "chat:ü",
        delivery: hookOf("dlv_turn", { senderId: "sender ü" }),
      });
      const { eventId } = await queueEvent(world, { delivery: hookOf("dlv_event", { senderId: undefined }) });
      for (const id of ["dlv_turn", "req_of_dlv_turn", turnId, "chat:ü", "sender ü"]) {
        expect(await list(world, { id })).toEqual(["dlv_turn"]);
      }
      for (const id of ["dlv_event", "req_of_dlv_event", eventId])
        expect(await list(world, { id })).toEqual(["dlv_event"]);
      for (const id of ["", "dlv_", "github-push", "dlv_before", "req_of", "shared", `${turnId} `]) {
        expect(await list(world, { id })).toEqual([]);
      }
      expect(await list(world, { id: turnId, sessionId: "chat:other" })).toEqual([]);
    });

    it("gives the same ones page by page, whatever comes meanwhile", async () => {
      await using world = await openWorld(engine);
      for (let n = 0; n < 9; n++) {
        await record(world, hookOf(`dlv_${n}`, { answer: n % 3 === 0 ? "refused" : "unmatched" }));
      }
      const every = [8, 7, 6, 5, 4, 3, 2, 1, 0].map((n) => `dlv_${n}`);
      const unmatched = [8, 7, 5, 4, 2, 1].map((n) => `dlv_${n}`);
      for (const limit of [1, 2, 3, 9, 20]) {
        expect(await pages(world, { limit })).toEqual(every);
        expect(await pages(world, { limit, outcome: "unmatched" })).toEqual(unmatched);
      }
      const { next } = await world.store.listDeliveries({ limit: 3 });
      await record(world, hookOf("dlv_new", { answer: "unmatched" }));
      expect(await list(world, { cursor: next ?? "", limit: 2 })).toEqual(["dlv_5", "dlv_4"]);
      await record(world, hookOf("dlv_newer", { answer: "unmatched" }), 1, 1);
      await record(world, hookOf("dlv_refused", { answer: "refused" }), 1, 1);
      expect(await list(world, { cursor: next ?? "" })).toEqual([]);
      expect(await list(world)).toEqual(["dlv_refused", "dlv_newer"]);
      for (const cursor of ["", "x", "c0", "c-1"]) {
        expect(await refusal(world.store.listDeliveries({ limit: 1, cursor }))).toBe("invalid-params");
      }
    });
  });
};
