// biome-ignore-all lint/suspicious/noThenProperty: the key of the configuration.
import { describe, expect } from "vitest";
import { START } from "#test/harness/clock.ts";
import {
  claimedIds,
  configure,
  HOUR,
  NEXT_HOUR,
  newsOfBudgets,
  runAtOnce,
  startAtOnce,
  statusOf,
  tokensOf,
} from "../budget-steps.ts";
import { RESERVED } from "../budgets.ts";
import { claimCompaction, endCompaction, startCompaction } from "../compactions.ts";
import { claimBeat, planBeat, queueEvent, startBeat, waiting } from "../inbound.ts";
import { testsOn } from "../tests-on.ts";
import { deliveryOf, type Engine, refusal, used, type World } from "../world.ts";

export function budgetUseTests(engine: Engine): void {
  const it = testsOn(engine);
  describe("the use of a budget", () => {
    it("takes running turns along into the next window, where their usage counts", async ({ world }) => {
      await configure(world, { tokens: 1_000 });
      const running = await startAtOnce(world);
      await runAtOnce(world, 7);
      await world.clock.advance(HOUR);
      expect(await statusOf(world)).toMatchObject({
        window: { start: NEXT_HOUR },
        tokens: { used: 0, reserved: RESERVED + 2 },
      });
      if (running) await world.end(running, { usage: used(20, 0) });
      expect(await tokensOf(world)).toEqual([20, 0]);
    });

    it("does not return to an earlier window when the clock goes back", async ({ world }) => {
      await configure(world, { tokens: 10 });
      await world.clock.advance(HOUR);
      await runAtOnce(world, 10);
      world.clock.jump(-HOUR);
      expect(await refusal(world.store.startTurn(world.order()))).toBe("budget-exceeded");
      expect((await statusOf(world)).window.start).toBe(NEXT_HOUR);
    });

    it("counts in the present window again after a clock was far ahead for a while", async ({ world }) => {
      await configure(world, { tokens: 10 });
      const year = 365 * 24 * HOUR;
      world.clock.jump(year);
      await runAtOnce(world, 7);
      world.clock.jump(-year);
      expect(await statusOf(world)).toMatchObject({ window: { end: NEXT_HOUR }, tokens: { used: 7 } });
      await runAtOnce(world, 3);
      expect(await refusal(world.store.startTurn(world.order()))).toBe("budget-exceeded");
      await world.clock.advance(HOUR);
      expect(await startAtOnce(world)).toBeDefined();
    });

    it("counts an estimate if the backend reported no usage, and marks it", async ({ world }) => {
      await configure(world, { tokens: 1_000, cost: 1_000 });
      const run = async (how: Parameters<World["end"]>[1]) => {
        const claimed = await startAtOnce(world, { session: world.newId("chat"), text: "x".repeat(40) });
        if (claimed) await world.end(claimed, { usage: used(0, 0), ...how });
      };
      await run({ reply: "y".repeat(40) });
      expect(await statusOf(world)).toMatchObject({ tokens: { used: 20 }, cost: { used: 20 }, estimatedTokens: 20 });
      await run({ status: "failed", reply: "" });
      expect(await statusOf(world)).toMatchObject({ tokens: { used: 20 } });
      await run({ status: "failed", reply: "", error: { name: "turn-timeout", detail: undefined } });
      expect(await statusOf(world)).toMatchObject({ tokens: { used: 30 }, estimatedTokens: 30 });
    });

    it("counts an estimate also if a turn is cancelled, returned or lost, and for a compaction", async ({ world }) => {
      await configure(world, { tokens: 10_000 });
      const start = async (session: string) => {
        const claimed = await startAtOnce(world, { session, text: "x".repeat(40) });
        if (!claimed) throw new Error("the turn was not claimed at once");
        return claimed;
      };
      await world.end(await start("chat:a"), { status: "cancelled", usage: used(0, 0) });
      expect(await tokensOf(world)).toEqual([10, 0]);
      const returned = await start("chat:b");
      const release = { now: world.clock.now(), delayMs: 60_000, usage: used(0, 0) };
      await world.store.releaseTurn(returned.claim, { ...release, replyBytes: 8 });
      expect(await tokensOf(world)).toEqual([22, 0]);
      const lost = await start("chat:c");
      await world.store.deleteSession("chat:c", world.clock.now());
      await world.end(lost, { usage: used(0, 0), reply: "y".repeat(20) });
      expect(await tokensOf(world)).toEqual([22 + 15, 0]);
      await world.end(await claimCompaction(world), { reply: "", usage: used(0, 0) });
      expect(await tokensOf(world)).toEqual([37 + 10, 0]);
      const failed = await start("chat:d");
      await world.store.releaseTurn(failed.claim, release);
      expect(await statusOf(world)).toMatchObject({ tokens: { used: 47 }, estimatedTokens: 47 });
    });

    it("counts compactions, reserves for them, and ends those without room", async ({ world }) => {
      await configure(world, { tokens: 1_000 });
      await runAtOnce(world, 1, { session: "chat:a" });
      const claimed = await claimCompaction(world);
      expect(await tokensOf(world)).toEqual([1, RESERVED + 2]);
      await endCompaction(world, claimed);
      expect(await tokensOf(world)).toEqual([1, 0]);
      await runAtOnce(world, 1_000);
      const turnId = await startCompaction(world);
      expect(await world.claim()).toMatchObject({ turns: [] });
      expect(world.told).toContainEqual({
        kind: "compacted",
        turnId,
        result: { error: expect.objectContaining({ name: "budget-exceeded" }) },
      });
    });

    it("lets a compaction wait for running turns, and ends it once it is spent, also with `pause`", async ({
      world,
    }) => {
      await configure(world, { tokens: RESERVED + 3, then: "pause" });
      await runAtOnce(world, 1, { session: "chat:a" });
      const running = await startAtOnce(world, { session: "chat:b" });
      if (!running) throw new Error("the turn was not claimed at once");
      const turnId = await startCompaction(world);
      expect(await claimedIds(world)).toEqual([]);
      expect(await world.store.getTurn(turnId)).toMatchObject({ status: "queued" });
      await world.end(running, { usage: used(RESERVED + 2, 0) });
      expect(await claimedIds(world)).toEqual([]);
      expect(world.told).toContainEqual(expect.objectContaining({ kind: "compacted", turnId }));
    });

    it("is reported on the gateway's stream at `warnAt` and at its limit, once in a window", async ({ world }) => {
      await configure(world, { tokens: 100, warnAt: 0.5 });
      for (const tokens of [49, 1, 10]) await runAtOnce(world, tokens);
      const news = { budgetName: "hourly", unit: "tokens", limit: 100 };
      expect(newsOfBudgets(world)).toMatchObject([{ name: "budget.warning", ...news, used: 50, resetsAt: NEXT_HOUR }]);
      expect((await statusOf(world)).state).toBe("warning");
      const late = await startAtOnce(world);
      if (late) await world.end(late, { usage: used(60, 0) });
      expect(newsOfBudgets(world).slice(1)).toMatchObject([{ name: "budget.exceeded", ...news }]);
      expect((await statusOf(world)).state).toBe("exceeded");
      await world.clock.advance(HOUR);
      await runAtOnce(world, 100);
      expect(newsOfBudgets(world).map(({ name }) => name)).toEqual([
        "budget.warning",
        "budget.exceeded",
        "budget.exceeded",
      ]);
    });

    it("counts nothing and refuses nothing without a policy, and lets waiting turns begin", async ({ world }) => {
      await configure(world, { tokens: 10, then: "pause" });
      await runAtOnce(world, 10);
      const { turnId } = await world.start();
      expect(await claimedIds(world)).toEqual([]);
      await configure(world);
      expect(await world.store.listBudgets()).toEqual([]);
      await world.sweep();
      expect(await claimedIds(world)).toEqual([turnId]);
    });

    it("keeps its use when its limit changes", async ({ world }) => {
      await configure(world, { tokens: 10 });
      await runAtOnce(world, 10);
      await configure(world, { tokens: 1_000 });
      expect(await tokensOf(world)).toEqual([10, 0]);
      expect(await startAtOnce(world)).toBeDefined();
    });

    it("is forgotten when its window is over and no policy has it, unless a grant lasts", async ({ world }) => {
      const names = ["used", "granted", "current"];
      await configure(world, ...names.map((name) => ({ name, tokens: 1_000, keys: [name] })));
      await runAtOnce(world, 10, { caller: "used" });
      const until = START + 50 * 24 * HOUR;
      await world.store.grantBudget("granted", { now: world.clock.now(), tokens: 5, until, by: "ops" });
      await world.clock.advance(33 * 24 * HOUR);
      await runAtOnce(world, 10, { caller: "current" });
      await configure(world);
      await world.sweep();
      // The clock is set back: without a record, nothing of that hour is used.
      world.clock.jump(-33 * 24 * HOUR);
      await configure(world, ...names.map((name) => ({ name, tokens: 1_000, per: "month", keys: [name] }) as const));
      const found = (await world.store.listBudgets()).map(({ rule, tokens }) => [rule.name, tokens]);
      expect(Object.fromEntries(found)).toMatchObject({
        used: { used: 0 },
        granted: { granted: 5 },
        current: { used: 10 },
      });
    });

    it("delays beats while it is spent, reports it once on the timelines of their events, and takes them in the next window", async ({
      world,
    }) => {
      await configure(world, { tokens: 10, surfaces: ["heartbeat"] });
      await runAtOnce(world, 10, { surface: "heartbeat" });
      const delivery = deliveryOf("dlv_1");
      const { eventId } = await queueEvent(world, { delivery, beatNow: true });
      await planBeat(world, 0);
      const skipped = { outcome: "ended", events: 0, turns: 0, returned: 0 };
      expect(await startBeat(world, { intervalMs: 60_000 })).toMatchObject(skipped);
      expect(await world.store.dueBeats(["main"])).toEqual({ due: [], nextDueInMs: 60_000 });
      await world.clock.advance(60_000);
      expect(await startBeat(world, { intervalMs: 2 * HOUR })).toMatchObject(skipped);
      expect(await world.store.dueBeats(["main"])).toEqual({ due: [], nextDueInMs: HOUR - 60_000 });
      const steps = (await world.store.getDelivery("dlv_1"))?.steps;
      expect(steps).toMatchObject([
        { name: "event.delayed", detail: '{"budget":"hourly","resets_at":"2026-11-21T09:00:00.000Z"}' },
      ]);
      expect(await waiting(world)).toEqual([eventId]);
      await world.clock.advance(HOUR - 60_000);
      const claimed = await claimBeat(world);
      expect(claimed.task).toMatchObject({ ids: [eventId] });
      await world.end(claimed, { usage: used(1, 0) });
      expect((await world.store.getEvent(eventId))?.status).toBe("handled");
    });

    it("begins a delayed beat when an event requests one, or a grant raises a budget", async ({ world }) => {
      await configure(world, { tokens: 10, surfaces: ["heartbeat"] });
      await runAtOnce(world, 10, { surface: "heartbeat" });
      await queueEvent(world, { beatNow: true });
      expect(await startBeat(world, { intervalMs: HOUR })).toMatchObject({ outcome: "ended" });
      expect((await world.store.dueBeats(["main"])).due).toEqual([]);
      await queueEvent(world, { beatNow: true });
      expect((await world.store.dueBeats(["main"])).due).toEqual(["main"]);
      expect(await startBeat(world, { intervalMs: HOUR })).toMatchObject({ outcome: "ended" });
      expect((await world.store.dueBeats(["main"])).due).toEqual([]);
      const told = world.told.length;
      await world.store.grantBudget("hourly", { now: world.clock.now(), tokens: 500, by: "ops" });
      expect(world.told.slice(told)).toContainEqual({ kind: "beat" });
      expect((await world.store.dueBeats(["main"])).due).toEqual(["main"]);
      expect(await startBeat(world)).toMatchObject({ outcome: "started" });
    });

    it("ends a beat between two of its turns when it is spent", async ({ world }) => {
      await configure(world, { tokens: 10 });
      for (let n = 0; n < 2; n++) await queueEvent(world);
      await planBeat(world, 0);
      const first = await claimBeat(world, { batch: { limit: 1 } });
      await world.end(first, { usage: used(10, 0) });
      expect(await startBeat(world, { batch: { limit: 1 } })).toMatchObject({ outcome: "ended", events: 1, turns: 1 });
      expect(await waiting(world)).toHaveLength(1);
      await world.clock.advance(HOUR);
      expect(await startBeat(world)).toMatchObject({ outcome: "started" });
    });

    it("holds the turn of a beat that was queued before it was spent, and does not count it against its events", async ({
      world,
    }) => {
      await configure(world, { tokens: 10 });
      const { eventId } = await queueEvent(world);
      await planBeat(world, 0);
      await startBeat(world);
      await runAtOnce(world, 10, { agent: "other" });
      expect(await claimedIds(world)).toEqual([]);
      expect(await world.store.getEvent(eventId)).toMatchObject({ status: "queued", attempts: 0 });
      await world.clock.advance(HOUR);
      expect(await claimedIds(world)).toHaveLength(1);
    });

    if (engine.reopen)
      it("survives a restart of the store, with its reservations, grants and waiting turns", async ({ world }) => {
        const rules = { tokens: 200, then: "pause" } as const;
        await configure(world, rules);
        await runAtOnce(world, 20);
        await startAtOnce(world, { session: "chat:run" });
        await runAtOnce(world, 1_000);
        await world.store.grantBudget("hourly", { now: world.clock.now(), tokens: 5, by: "ops" });
        const spent = await world.store.listBudgets();
        expect(spent).toMatchObject([{ tokens: { used: 1_020, reserved: RESERVED + 2, granted: 5 } }]);
        await world.reopen();
        await configure(world, rules);
        expect(await world.store.listBudgets()).toEqual(spent);
        const { turnId } = await world.start();
        expect(await claimedIds(world)).toEqual([]);
        await world.reopen();
        await configure(world, rules);
        await world.clock.advance(HOUR);
        await world.sweep();
        expect(await claimedIds(world)).toContain(turnId);
      });
  });

  describe("a grant", () => {
    it("raises the limits until the end of the window, is reported, and lets waiting turns begin", async ({
      world,
    }) => {
      await configure(world, { tokens: 10, cost: 1e9, then: "pause" });
      await runAtOnce(world, 10);
      const { turnId } = await world.start();
      expect(await claimedIds(world)).toEqual([]);
      const now = world.clock.now();
      const granted = await world.store.grantBudget("hourly", { now, tokens: 500, cost: 25e7, by: "ops" });
      expect(granted).toMatchObject({
        tokens: { used: 10, limit: 10, granted: 500 },
        cost: { granted: 25e7 },
        state: "open",
      });
      expect(newsOfBudgets(world).at(-1)).toMatchObject({
        name: "budget.granted",
        budgetName: "hourly",
        tokens: 500,
        cost: 0.25,
        until: NEXT_HOUR,
        grantedBy: "ops",
      });
      expect(await claimedIds(world)).toEqual([turnId]);
      await world.clock.advance(HOUR);
      expect((await statusOf(world)).tokens).toMatchObject({ limit: 10, granted: 0 });
    });

    it("opens a spent budget at once", async ({ world }) => {
      await configure(world, { tokens: 10 });
      await runAtOnce(world, 10);
      expect(await refusal(world.store.startTurn(world.order()))).toBe("budget-exceeded");
      await world.store.grantBudget("hourly", { now: world.clock.now(), tokens: 1, by: "ops" });
      expect(await startAtOnce(world)).toBeDefined();
    });

    it("lasts until its own end, also over several windows, and adds to others", async ({ world }) => {
      await configure(world, { tokens: 10 });
      const grant = (tokens: number, until?: number) =>
        world.store.grantBudget("hourly", { now: world.clock.now(), tokens, until, by: "ops" });
      await grant(1, NEXT_HOUR + HOUR);
      await grant(2);
      expect((await statusOf(world)).tokens?.granted).toBe(3);
      await world.clock.advance(HOUR);
      await runAtOnce(world, 1);
      expect((await statusOf(world)).tokens?.granted).toBe(1);
      await world.clock.advance(HOUR);
      expect((await statusOf(world)).tokens?.granted).toBe(0);
    });

    it("is refused for an unknown budget, for a unit that is not limited, without a unit, and with a past end", async ({
      world,
    }) => {
      await configure(world, { tokens: 10 });
      const now = world.clock.now();
      const grant = (name: string, order: object) =>
        refusal(world.store.grantBudget(name, { now, by: "ops", ...order }));
      expect(await grant("other", { tokens: 1 })).toBe("budget-not-found");
      expect(await grant("hourly", { cost: 1 })).toBe("invalid-request");
      expect(await grant("hourly", {})).toBe("invalid-request");
      expect(await grant("hourly", { tokens: 1, until: now })).toBe("invalid-request");
      expect(newsOfBudgets(world)).toEqual([]);
    });
  });
}
