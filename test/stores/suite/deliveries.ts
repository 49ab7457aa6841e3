import { describe, expect } from "vitest";
import type { DeliveryOutcome, DeliveryStep } from "#store/store.ts";
import { hookOf, list, record, STEPS } from "../deliveries.ts";
import { expectFields } from "../fields.ts";
import { failEvent, queueEvent, takeEvents } from "../inbound.ts";
import { testsOn } from "../tests-on.ts";
import { deliveryOf, type Engine, RECORDER, refusal, type World } from "../world.ts";

async function outcomeOf(world: World, deliveryId: string): Promise<DeliveryOutcome | undefined> {
  return (await world.store.getDelivery(deliveryId))?.outcome;
}

const STRANGER = { answer: "refused", caller: "" } as const;

/** Starts a turn with a delivery in a ring of three, in a new session. */
function recordTurn(world: World, n: number, recorder = { entries: 3, bytes: 1e9, refused: 3 }, body?: string) {
  return world.start({ session: `chat:${n}`, delivery: deliveryOf(`dlv_${n}`, body), recorder });
}

async function kept(world: World, count: number): Promise<number[]> {
  const found: number[] = [];
  for (let n = 0; n < count; n++) if (await world.store.getDelivery(`dlv_${n}`)) found.push(n);
  return found;
}

export function deliveriesTests(engine: Engine): void {
  const it = testsOn(engine);
  describe("recorded requests", () => {
    it.for(["repeated", "unmatched", "refused", "challenge"] as const)(
      "are stored completely if they started nothing, with the answer: %s",
      async (answer, { world }) => {
        const delivery = hookOf("dlv_1", { answer, body: "\0\xff\x80" });
        await record(world, delivery);
        const nothing = { turnId: undefined, sessionId: undefined, eventId: undefined };
        const kept = await world.store.getDelivery("dlv_1");
        expect(kept).toEqual({ ...delivery, ...nothing, outcome: answer });
        expect(await world.store.getDelivery("dlv_unknown")).toBeUndefined();
      },
    );

    it("may lack all optional fields", async ({ world }) => {
      const none = { mapping: undefined, senderId: undefined, replayOf: undefined, status: undefined, body: undefined };
      const delivery = hookOf("dlv_1", { ...none, steps: [], headers: "", answer: "refused", caller: "" });
      await record(world, delivery);
      expectFields(await world.store.getDelivery("dlv_1"), delivery);
    });

    it("show the turn or event that a request repeats", async ({ world }) => {
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

    it("have a separate ring for refusals of unauthenticated callers, which remove nothing else", async ({ world }) => {
      await record(world, hookOf("dlv_kept", { answer: "unmatched" }), 3, 2);
      await record(world, hookOf("dlv_caller", { answer: "refused" }), 3, 2);
      for (let n = 0; n < 5; n++) await record(world, hookOf(`dlv_${n}`, STRANGER), 3, 2);
      expect(await list(world)).toEqual(["dlv_4", "dlv_3", "dlv_2", "dlv_caller", "dlv_kept"]);
      await record(world, hookOf("dlv_next", { answer: "challenge" }), 3, 2);
      expect(await list(world)).toEqual(["dlv_next", "dlv_4", "dlv_3", "dlv_2", "dlv_caller"]);
      for (let n = 5; n < 8; n++) await record(world, hookOf(`dlv_${n}`, { answer: "refused" }), 3, 2);
      expect(await list(world)).toEqual(["dlv_7", "dlv_6", "dlv_4", "dlv_3", "dlv_2"]);
      expect(world.store.stats().deliveries).toBe(5);
    });

    it("store refusals of unauthenticated callers up to a part of the recorder's bytes", async ({ world }) => {
      const body = "x".repeat(10_000);
      const limits = { entries: 1_000, bytes: 200_000, refused: 1_000 };
      for (let n = 0; n < 100; n++) {
        await world.store.recordDelivery(hookOf(`dlv_${n}`, { ...STRANGER, body }), limits);
      }
      expect(world.store.stats().deliveryBytes).toBeLessThan(100_000);
      expect(await list(world, { limit: 1 })).toEqual(["dlv_99"]);
    });

    it("show the state of their turn, at every step", async ({ world }) => {
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

    it("show the state of their event, also when it is queued again, until the event is no longer stored", async ({
      world,
    }) => {
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

    it("are erased in the order of their ends, even if their event was queued again meanwhile", async ({ world }) => {
      const { eventId } = await queueEvent(world, { delivery: hookOf("dlv_1") });
      await failEvent(world, eventId, 3);
      const unmatched = (id: string) => hookOf(id, { answer: "unmatched" });
      await record(world, unmatched("dlv_2"));
      await world.store.requeueEvent(eventId, { now: world.clock.now(), beatNow: false, streamKeep: 10 });
      await world.end(await takeEvents(world, [eventId]));
      for (const id of ["dlv_3", "dlv_4"]) {
        await world.store.recordDelivery(unmatched(id), { ...RECORDER, entries: 2 });
      }
      const left = ["dlv_1", "dlv_2", "dlv_3", "dlv_4"].map(async (id) => (await world.store.getDelivery(id)) && id);
      expect((await Promise.all(left)).filter(Boolean)).toEqual(["dlv_3", "dlv_4"]);
    });

    it("get further steps behind the initial ones, whatever their state is", async ({ world }) => {
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
      const expected = { ...hookOf("dlv_1"), steps: [...STEPS, ...steps.slice(0, 2)], outcome: "completed" } as const;
      expectFields(await world.store.getDelivery("dlv_1"), expected);
      expectFields(await world.store.getDelivery("dlv_2"), {
        ...deliveryOf("dlv_2"),
        answer: "refused",
        steps: steps.slice(2),
      });
      expect(await list(world)).toEqual(["dlv_2", "dlv_1"]);
    });

    it("get both of two steps that are added at once", async ({ world }) => {
      await world.start({ delivery: deliveryOf("dlv_1") });
      const add = (at: number) => world.store.addDeliveryStep("dlv_1", { at, name: "a.b", detail: undefined });
      await Promise.all([1, 2, 3, 4, 5].map(add));
      const steps = (await world.store.getDelivery("dlv_1"))?.steps ?? [];
      expect(steps.map(({ at }) => at).sort()).toEqual([1, 2, 3, 4, 5]);
    });

    it("have at most two hundred steps each", async ({ world }) => {
      await world.start({ delivery: deliveryOf("dlv_1") });
      for (let at = 0; at < 210; at++)
        await world.store.addDeliveryStep("dlv_1", { at, name: "a.b", detail: undefined });
      expect((await world.store.getDelivery("dlv_1"))?.steps).toHaveLength(200);
    });

    it("report that their work was deleted with its session, and lose all content of the request and the result", async ({
      world,
    }) => {
      await world.start({ delivery: hookOf("dlv_ended", { body: "secret" }) });
      await world.end(await world.claimNext());
      const { turnId } = await world.start({ delivery: hookOf("dlv_running", { body: "secret" }) });
      await world.claimNext();
      await world.start({ delivery: hookOf("dlv_queued", { body: "secret" }) });
      await world.start({ session: "chat:b", delivery: deliveryOf("dlv_other", "other") });
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
      expectFields(await world.store.getDelivery("dlv_other"), deliveryOf("dlv_other", "other"));
    });

    it("leave no bytes of an erased request", async ({ world }) => {
      const large = "x".repeat(10_000);
      await record(world, hookOf("dlv_other", { answer: "unmatched" }));
      const { deliveryBytes } = world.store.stats();
      const steps = [{ at: 1, name: "message.rendered", detail: JSON.stringify({ message: large }) }];
      for (let n = 0; n < 3; n++) {
        await world.start({ delivery: hookOf(`dlv_${n}`, { body: large, steps }) });
      }
      expect(world.store.stats().deliveryBytes).toBeGreaterThan(deliveryBytes + 60_000);
      await world.store.deleteSession("chat:a", world.clock.now());
      expect(world.store.stats().deliveryBytes).toBeLessThan(deliveryBytes + 6_000);
    });

    it("report the deletion of a long session immediately, too", async ({ world }) => {
      const count = 300;
      for (let n = 0; n < count; n++) {
        await world.start({ delivery: hookOf(`dlv_${n}`, { body: "secret" }) });
        await world.end(await world.claimNext());
      }
      await world.store.deleteSession("chat:a", world.clock.now());
      // Another session with the same id is independent of it.
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

    it("count their unfinished bytes above the recorder's limit against the store's limit", async ({ world }) => {
      const recorder = { entries: 1_000, bytes: 50_000, refused: 10 };
      const limits = { storeBytes: world.store.stats().bytes + 100_000 };
      const body = "x".repeat(20_000);
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

  describe("recording deliveries", () => {
    it("deletes the oldest if there are more than the limit", async ({ world }) => {
      for (let n = 0; n < 5; n++) {
        await recordTurn(world, n);
        await world.end(await world.claimNext());
      }
      expect(await kept(world, 5)).toEqual([2, 3, 4]);
      expect(world.store.stats().deliveries).toBe(3);
    });

    it("does not delete a request whose turn has not ended, however many arrive after it", async ({ world }) => {
      await recordTurn(world, 0);
      const claimed = await world.claimNext();
      for (let n = 1; n < 6; n++) {
        await recordTurn(world, n);
        await world.end(await world.claimNext());
      }
      expect(await kept(world, 6)).toEqual([0, 4, 5]);
      await world.end(claimed);
      for (let n = 6; n < 9; n++) {
        await recordTurn(world, n);
        await world.end(await world.claimNext());
      }
      expect(await kept(world, 9)).toEqual([6, 7, 8]);
    });

    it("refuses no turn if all stored requests are unfinished", async ({ world }) => {
      for (let n = 0; n < 6; n++) await recordTurn(world, n);
      expect(await kept(world, 6)).toEqual([0, 1, 2, 3, 4, 5]);
    });

    it("stores at most the limit of bytes", async ({ world }) => {
      for (let n = 0; n < 5; n++) {
        await recordTurn(world, n, { entries: 100, bytes: 25_000, refused: 100 }, "x".repeat(10_000));
        await world.end(await world.claimNext());
      }
      expect(await kept(world, 5)).toEqual([3, 4]);
    });
  });
}
