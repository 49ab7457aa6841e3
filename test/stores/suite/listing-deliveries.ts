import { describe, expect } from "vitest";
import { newId } from "#kit/ids.ts";
import { MOST_SCANNED } from "#store/rules/pages.ts";
import type { DeliveryQuery } from "#store/store.ts";
import { hookOf, list, record, STEPS } from "../deliveries.ts";
import { queueEvent, takeEvents } from "../inbound.ts";
import { testsOn } from "../tests-on.ts";
import { deliveryOf, type Engine, RECORDER, refusal, times, used, type World } from "../world.ts";

/** All items of a list, page by page. */
async function pages(world: World, query: DeliveryQuery): Promise<string[]> {
  const ids: string[] = [];
  for (let cursor: string | undefined; ; ) {
    const page = await world.store.listDeliveries({ ...query, ...(cursor !== undefined && { cursor }) });
    ids.push(...page.items.map(({ deliveryId }) => deliveryId));
    if (page.next === undefined) return ids;
    expect(page.items).toHaveLength(query.limit);
    cursor = page.next;
  }
}

export function listingDeliveriesTests(engine: Engine): void {
  const it = testsOn(engine);
  describe("listing recorded requests", () => {
    it("returns the newest first, without their headers, bodies and steps", async ({ world }) => {
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

    it("returns those that match: by surface, outcome, mapping, session, time, and all of them together", async ({
      world,
    }) => {
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
      // The turn of the other session runs first.
      await world.claim();
      await world.end(await takeEvents(world, [event.eventId]));
      expect(await list(world, { outcome: "running" })).toEqual(["dlv_hook"]);
      expect(await list(world, { outcome: "handled" })).toEqual(["dlv_event"]);
    });

    it("has the message, the result, and the reason if there is none", async ({ world }) => {
      const long = `  First\n\tline ${"🙂".repeat(100)}`;
      await world.start({ text: long, delivery: hookOf("dlv_turn") });
      const at = world.clock.now();
      await world.end(await world.claimNext(), { reply: "good\r\nday", usage: used(4, 3) });
      await world.start({ text: "why", delivery: hookOf("dlv_failed") });
      const error = { name: "turn-failed", detail: "it answered 503" } as const;
      await world.end(await world.claimNext(), { status: "failed", error });
      await world.start({ text: "and you", delivery: hookOf("dlv_running") });
      await world.claimNext();
      await queueEvent(world, { text: " the \n disk is full", delivery: hookOf("dlv_event") });
      const detail = JSON.stringify({ error: "unauthenticated", status: 401, detail: "No token." });
      const steps = [...STEPS, { at: 3, name: "request.refused", detail }];
      await record(world, hookOf("dlv_refused", { answer: "refused", steps }));
      const none = { replyPreview: undefined, endedAt: undefined, tokens: undefined, announcement: undefined };
      const { items } = await world.store.listDeliveries({ limit: 10 });
      const results = items.map((item) => ({
        preview: item.preview,
        replyPreview: item.replyPreview,
        endedAt: item.endedAt,
        tokens: item.tokens,
        announcement: item.announcement,
        error: item.error,
      }));
      expect(results).toEqual([
        { ...none, preview: undefined, error: { name: "unauthenticated", detail: "No token." } },
        { ...none, preview: "the disk is full", error: undefined },
        { ...none, preview: "and you", error: undefined },
        { ...none, preview: "why", endedAt: at, tokens: 0, error },
        {
          ...none,
          // 11 characters, 54 complete pairs, and not half of another.
          preview: `First line ${"🙂".repeat(54)}`,
          replyPreview: "good day",
          endedAt: at,
          tokens: 7,
          error: undefined,
        },
      ]);
      await world.store.deleteSession("chat:a", world.clock.now());
      const gone = { ...none, preview: undefined, error: undefined };
      expect((await world.store.listDeliveries({ limit: 10 })).items.at(-1)).toMatchObject({
        ...gone,
        outcome: "gone",
      });
    });

    it("has no text of requests that were recorded without bodies", async ({ world }) => {
      const previews = { preview: "hello", replyPreview: "good day" };
      const none = { preview: undefined, replyPreview: undefined };
      const cases = [
        ["dlv_1", true, "{}"],
        ["dlv_2", true, undefined],
        ["dlv_3", false, "{}"],
      ] as const;
      for (const [id, showsWords, body] of cases) {
        await world.start({ text: "hello", delivery: hookOf(id, { showsWords, body }) });
        await world.end(await world.claimNext(), { reply: "good day" });
      }
      const listed = (await world.store.listDeliveries({ limit: 10 })).items.reverse();
      expect(await world.store.readDeliveries(cases.map(([id]) => id))).toEqual(listed);
      for (const [n, [id, showsWords]] of cases.entries()) {
        const shown = { deliveryId: id, showsWords, ...(showsWords ? previews : none) };
        expect(listed[n]).toMatchObject(shown);
        expect(await world.store.getDelivery(id)).toMatchObject(shown);
      }
    });

    it("returns a repeat with the message of its turn, and without the result", async ({ world }) => {
      const announce = { channel: "ops", hops: 0 };
      const { turnId, sessionId, agent } = await world.start({ text: "once", announce, delivery: hookOf("dlv_1") });
      await world.end(await world.claimNext(), { reply: "done", usage: used(1, 1) });
      await world.store.recordDelivery(hookOf("dlv_2", { answer: "repeated" }), RECORDER, { turnId, sessionId, agent });
      const [repeat] = (await world.store.listDeliveries({ limit: 1 })).items;
      const nothing = { replyPreview: undefined, endedAt: undefined, tokens: undefined, announcement: undefined };
      expect(repeat).toMatchObject({ deliveryId: "dlv_2", outcome: "repeated", preview: "once", ...nothing });
      expect(await list(world, { announcement: "waiting" })).toEqual(["dlv_1"]);
    });

    it("returns those whose reply is in a state, or is sent to a channel", async ({ world }) => {
      for (const [n, channel] of ["ops", "dead", "ops"].entries()) {
        await world.start({ announce: { channel, hops: 0 }, delivery: hookOf(`dlv_${n}`) });
        await world.end(await world.claimNext());
      }
      await world.start({ delivery: hookOf("dlv_3") });
      await world.end(await world.claimNext());
      const request = { node: "node_a", leaseMs: 1_000, free: {}, others: { free: 1, before: 1e15 } };
      const { claimed } = await world.store.claimOutgoing(request);
      const step = { at: 1, name: "announcement.failed", detail: undefined };
      for (const { claim } of claimed) {
        const end = { state: "failed", reason: "gone", step } as const;
        await world.store.endOutgoing(claim, end);
      }
      expect(await list(world, { announcement: "failed" })).toEqual(["dlv_1", "dlv_0"]);
      expect(await list(world, { announcement: "waiting" })).toEqual(["dlv_2"]);
      expect(await list(world, { announcement: "delivered" })).toEqual([]);
      expect(await list(world, { channel: "ops" })).toEqual(["dlv_2", "dlv_0"]);
      expect(await list(world, { channel: "ops", announcement: "failed" })).toEqual(["dlv_0"]);
      expect(await list(world, { announcement: "failed", outcome: "failed" })).toEqual([]);
    });

    it("continues after a delivery, however many were added since", async ({ world }) => {
      for (const n of [1, 2, 3, 4]) await record(world, hookOf(`dlv_${n}`, { answer: "unmatched" }));
      const page = await world.store.listDeliveries({ limit: 2, before: "dlv_4" });
      expect(page.items.map(({ deliveryId }) => deliveryId)).toEqual(["dlv_3", "dlv_2"]);
      await record(world, hookOf("dlv_5", { answer: "unmatched" }));
      expect(await list(world, { limit: 2, cursor: page.next ?? "" })).toEqual(["dlv_1"]);
      expect(await list(world, { before: "dlv_2" })).toEqual(["dlv_1"]);
      expect(await list(world, { before: "dlv_1" })).toEqual([]);
      const unknown = expect.objectContaining({ name: "delivery-not-found" });
      await expect(list(world, { before: "dlv_unknown" })).rejects.toEqual(unknown);
      const refused = expect.objectContaining({ name: "invalid-request" });
      await expect(list(world, { before: "dlv_1", cursor: page.next ?? "" })).rejects.toEqual(refused);
    });

    it("continues from the time of a delivery that is no longer stored", async ({ world }) => {
      const ids = [10, 20, 30, 40, 50].map((at) => newId("dlv", at));
      const [first, second, third, fourth, last] = ids as [string, string, string, string, string];
      // Its turn has not ended, so others are erased before it.
      await world.start({ delivery: hookOf(first) });
      for (const id of [second, third, fourth]) await record(world, hookOf(id, { answer: "unmatched" }));
      await record(world, hookOf(last, { answer: "unmatched" }), 1_000, 3);
      expect(await list(world)).toEqual([last, fourth, first]);
      expect(await list(world, { before: third })).toEqual([first]);
      expect(await list(world, { before: second, limit: 1 })).toEqual([first]);
      expect(await list(world, { before: third, outcome: "unmatched" })).toEqual([]);
      expect(await list(world, { before: newId("dlv", 45) })).toEqual([fourth, first]);
      expect(await list(world, { before: newId("dlv", 50) })).toEqual([last, fourth, first]);
      expect(await list(world, { before: newId("dlv", 9) })).toEqual([]);
      expect(await list(world, { before: newId("dlv", 2 ** 48 - 1) })).toEqual([last, fourth, first]);
    });

    it("finds the place of a delivery that is no longer stored among many", async ({ world }) => {
      const ids = times(1_200, (n) => newId("dlv", n + 1));
      for (const id of ids) await record(world, hookOf(id, { answer: "unmatched" }), 1_000, 2_000);
      expect(await list(world, { before: newId("dlv", 2), limit: 5 })).toEqual([ids[1], ids[0]]);
      expect(await list(world, { before: newId("dlv", 700), limit: 1 })).toEqual([ids[699]]);
    });

    it("ends a page when it has a MiB", async ({ world }) => {
      const path = `/hooks/${"x".repeat(300_000)}`;
      const ids = times(9, (n) => `dlv_${n}`).reverse();
      for (const id of ids.toReversed()) await record(world, hookOf(id, { answer: "refused", path }));
      const { items, next } = await world.store.listDeliveries({ limit: 100 });
      expect(items.map(({ deliveryId }) => deliveryId)).toEqual(ids.slice(0, 4));
      expect(await list(world, { cursor: next ?? "" })).toEqual(ids.slice(4, 8));
    });

    it("reads at most MOST_SCANNED deliveries for a filter by outcome, and all of them for an id", {
      timeout: 120_000,
    }, async ({ world }) => {
      await record(world, hookOf("dlv_refused", { answer: "refused" }), 1_000, 20_000);
      for (let n = 0; n < MOST_SCANNED; n += 500)
        await Promise.all(
          times(500, (m) => record(world, hookOf(`dlv_${n + m}`, { answer: "unmatched" }), 1_000, 20_000)),
        );
      const { items, next } = await world.store.listDeliveries({ limit: 10, outcome: "refused" });
      expect(items).toEqual([]);
      expect(await list(world, { limit: 10, outcome: "refused", cursor: next ?? "" })).toEqual(["dlv_refused"]);
      expect(await list(world, { limit: 10, id: "dlv_refused" })).toEqual(["dlv_refused"]);
    });

    it("MUST not have the detail of a refusal once the turn of the request is deleted", async ({ world }) => {
      const { turnId, sessionId, agent } = await world.start({ session: "chat:a", delivery: hookOf("dlv_1") });
      const detail = JSON.stringify({ error: "session-conflict", status: 409, detail: "somebody-to-forget" });
      const refused = hookOf("dlv_2", { answer: "refused", steps: [{ at: 3, name: "request.refused", detail }] });
      await world.store.recordDelivery(refused, RECORDER, { turnId, sessionId, agent });
      const error = { name: "session-conflict", detail: "somebody-to-forget" };
      expect((await world.store.getDelivery("dlv_2"))?.error).toEqual(error);
      await world.store.deleteSession("chat:a", world.clock.now());
      const found = [await world.store.getDelivery("dlv_2"), ...(await world.store.listDeliveries({ limit: 2 })).items];
      expect(JSON.stringify(found)).not.toContain("somebody-to-forget");
      expect(found[0]?.error).toEqual({ ...error, detail: undefined });
    });

    it("returns those of an agent: they started its turn, queued its event, or repeat one of these", async ({
      world,
    }) => {
      const turn = await world.start({ session: "chat:a", agent: "clerk", delivery: hookOf("dlv_turn") });
      await world.start({ session: "chat:b", delivery: hookOf("dlv_other") });
      const event = await queueEvent(world, { agent: "clerk", delivery: hookOf("dlv_event") });
      await record(world, hookOf("dlv_refused", { answer: "refused" }));
      const { turnId, sessionId, agent } = turn;
      const repeat = hookOf("dlv_repeat", { answer: "repeated" });
      await world.store.recordDelivery(repeat, RECORDER, { turnId, sessionId, agent });
      expect(await list(world, { agent: "clerk" })).toEqual(["dlv_repeat", "dlv_event", "dlv_turn"]);
      expect(await list(world, { agent: "main" })).toEqual(["dlv_other"]);
      expect(await list(world, { agent: "cler" })).toEqual([]);
      const { messageId } = (await world.store.getDelivery("dlv_turn")) ?? {};
      expect(messageId).toMatch(/^msg_/);
      expect(await world.store.getDelivery("dlv_event")).toMatchObject({ agent: "clerk", eventId: event.eventId });
      expect(await world.store.getDelivery("dlv_refused")).toMatchObject({ agent: undefined, messageId: undefined });
      expect(await list(world, { id: String(messageId) })).toEqual(["dlv_turn"]);
      await world.store.deleteSession("chat:a", world.clock.now());
      expect(await list(world, { agent: "clerk", outcome: "gone" })).toEqual(["dlv_turn"]);
    });

    it("finds the few matches among many, including those whose content was erased", async ({ world }) => {
      const end = async (status: "failed" | "completed") => world.end(await world.claimNext(), { status });
      await world.start({ session: "chat:erased", delivery: { ...deliveryOf("dlv_erased"), surface: "rpc" } });
      await end("completed");
      await world.start({ session: "chat:failed", delivery: { ...deliveryOf("dlv_failed"), surface: "rpc" } });
      await end("failed");
      await record(world, hookOf("dlv_refused", { answer: "refused" }));
      for (let n = 0; n < 200; n++) {
        await world.start({ session: "chat:many", delivery: deliveryOf(`dlv_many_${n}`) });
        await end("completed");
      }
      await world.store.deleteSession("chat:erased", world.clock.now());
      expect(await list(world, { surface: "rpc" })).toEqual(["dlv_failed", "dlv_erased"]);
      expect(await list(world, { surface: "hooks" })).toEqual(["dlv_refused"]);
      expect(await list(world, { outcome: "failed" })).toEqual(["dlv_failed"]);
      expect(await list(world, { outcome: "refused" })).toEqual(["dlv_refused"]);
      expect(await list(world, { outcome: "gone" })).toEqual(["dlv_erased"]);
      expect(await list(world, { outcome: "running" })).toEqual([]);
      expect((await world.store.listTurns({ status: "failed", limit: 10 })).items).toHaveLength(1);
    });

    it("finds a delivery by any of its ids, and by nothing else", async ({ world }) => {
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

    it("returns the same deliveries page by page, whatever is added meanwhile", async ({ world }) => {
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
      await record(world, hookOf("dlv_refused", { answer: "refused", caller: "" }), 1, 1);
      expect(await list(world, { cursor: next ?? "" })).toEqual([]);
      expect(await list(world)).toEqual(["dlv_refused", "dlv_newer"]);
      for (const cursor of ["", "x", "c0", "c-1"]) {
        expect(await refusal(world.store.listDeliveries({ limit: 1, cursor }))).toBe("invalid-params");
      }
    });
  });
}
