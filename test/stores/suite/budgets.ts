// biome-ignore-all lint/suspicious/noThenProperty: the key of the configuration.
import { describe, expect } from "vitest";
import { START } from "#test/harness/clock.ts";
import {
  claimAtOnce,
  claimedIds,
  configure,
  HOUR,
  NEXT_HOUR,
  runAtOnce,
  startAtOnce,
  statusOf,
  tokensOf,
} from "../budget-steps.ts";
import { RESERVED } from "../budgets.ts";
import { testsOn } from "../tests-on.ts";
import { type Engine, LEASE_MS, times, used, usedMore } from "../world.ts";

export function budgetsTests(engine: Engine): void {
  const it = testsOn(engine);
  describe("a budget", () => {
    it("is open and unused at first, in the window of its period and time zone", async ({ world }) => {
      await configure(
        world,
        { tokens: 1_000, cost: 5e9 },
        { name: "daily", per: "day", timeZone: "Asia/Kolkata", cost: 1 },
      );
      const unused = { used: 0, reserved: 0, granted: 0 };
      expect(await world.store.listBudgets()).toMatchObject([
        {
          rule: { name: "hourly" },
          window: { start: START, end: NEXT_HOUR },
          tokens: { ...unused, limit: 1_000 },
          cost: { ...unused, limit: 5e9 },
          estimatedTokens: 0,
          state: "open",
        },
        {
          window: { start: Date.UTC(2026, 10, 20, 18, 30), end: Date.UTC(2026, 10, 21, 18, 30) },
          tokens: undefined,
          cost: { ...unused, limit: 1 },
        },
      ]);
    });

    it("reserves the most that a turn may use when it is claimed, and counts its usage when it ends", async ({
      world,
    }) => {
      await configure(world, { tokens: 1_000, cost: 1e6 });
      await world.start();
      expect(await tokensOf(world)).toEqual([0, 0]);
      const claimed = await world.claimNext();
      const reserved = RESERVED + 2;
      const cost = 2 * 1 + RESERVED * 3;
      expect(await statusOf(world)).toMatchObject({ tokens: { used: 0, reserved }, cost: { used: 0, reserved: cost } });
      await world.end(claimed, { usage: usedMore(3, 4, 77) });
      expect(await statusOf(world)).toMatchObject({
        tokens: { used: 9, reserved: 0 },
        cost: { used: 77, reserved: 0 },
      });
    });

    it("reserves for the whole conversation", async ({ world }) => {
      await configure(world, { tokens: 1e6 });
      await runAtOnce(world, 1, { session: "chat:a", text: "x".repeat(400) });
      await startAtOnce(world, { session: "chat:a", text: "y".repeat(40) });
      expect(await tokensOf(world)).toEqual([1, RESERVED + 110 + 1]);
    });

    it("reserves for the context of the message, also of a queued turn, and counts it in an estimate", async ({
      world,
    }) => {
      await configure(world, { tokens: 1e6 });
      const withContext = (session: string, claim?: ReturnType<typeof claimAtOnce>) =>
        world.store.startTurn({ ...world.order({ session, claim }), context: "c".repeat(4_000) });
      await withContext("chat:a", claimAtOnce(world));
      expect(await tokensOf(world)).toEqual([0, RESERVED + 1_000 + 2]);
      await withContext("chat:b");
      const claimed = await world.claimNext();
      expect(await tokensOf(world)).toEqual([0, 2 * (RESERVED + 1_000 + 2)]);
      await world.end(claimed, { usage: used(0, 0), reply: "" });
      expect((await statusOf(world)).estimatedTokens).toBe(1_002);
      await withContext("chat:c");
      const lost = await world.claimNext();
      await world.clock.advance(LEASE_MS + 1);
      await world.sweep();
      await world.end(lost, { usage: used(0, 0), reply: "" });
      expect((await statusOf(world)).estimatedTokens).toBe(2 * 1_002);
    });

    it("lets the turns that waited for its window begin some at a time", async ({ world }) => {
      await configure(world, { tokens: 10, then: "pause" });
      await runAtOnce(world, 10);
      for (let n = 0; n < 257; n++) await world.start({ session: `chat:${n}` });
      for (let n = 0; n < 5; n++) expect(await claimedIds(world)).toEqual([]);
      await configure(world, { tokens: 1e9, then: "pause" });
      await world.clock.advance(HOUR);
      const first = await world.claim();
      expect(first.turns).toHaveLength(256);
      expect(first.nextDueInMs).toBeLessThanOrEqual(0);
      expect(await claimedIds(world)).toHaveLength(1);
    });

    it("applies to its agents, keys and sources", async ({ world }) => {
      await configure(
        world,
        { name: "agents", agents: ["main"] },
        { name: "keys", keys: ["ci"] },
        { name: "hooks", surfaces: ["hooks"] },
        { name: "all", agents: ["main"], keys: ["ci"], surfaces: ["hooks"] },
      );
      await runAtOnce(world, 1);
      await runAtOnce(world, 10, { agent: "other", caller: "crm", surface: "hooks" });
      await runAtOnce(world, 100, { caller: "crm" });
      await runAtOnce(world, 1_000, { surface: "hooks" });
      const all = (await world.store.listBudgets()).map(({ rule, tokens }) => [rule.name, tokens?.used]);
      expect(Object.fromEntries(all)).toEqual({ agents: 1_101, keys: 1_001, hooks: 1_010, all: 1_000 });
    });

    it("refuses new turns once it is spent, stores nothing, and says when its window ends", async ({ world }) => {
      await configure(world, { tokens: 10 });
      await runAtOnce(world, 10);
      const before = await world.everything(["chat:new"]);
      await world.clock.advance(60_000);
      const refused = world.store.startTurn(world.order({ session: "chat:new", key: "k" }));
      await expect(refused).rejects.toMatchObject({
        name: "budget-exceeded",
        detail: "The budget `hourly` of 10 tokens per hour is spent. It resets at 2026-11-21T09:00:00.000Z.",
        extra: { retryAfterMs: HOUR - 60_000, budget: { name: "hourly", resetsAt: NEXT_HOUR } },
      });
      expect(await world.everything(["chat:new"])).toEqual(before);
      expect(await world.store.findReplay({ key: "k", hash: "hash" }, world.clock.now())).toBeUndefined();
      await world.clock.advance(HOUR - 60_000);
      expect(await startAtOnce(world, { session: "chat:new", key: "k" })).toBeDefined();
    });

    it("answers a repeated request though it is spent", async ({ world }) => {
      await configure(world, { tokens: 10 });
      const { turnId } = await world.start({ key: "k" });
      await world.end(await world.claimNext(), { usage: used(10, 0) });
      expect(await world.store.startTurn(world.order({ key: "k" }))).toMatchObject({
        turn: { turnId },
        replayed: true,
      });
    });

    it("does not exceed its limit by more than one reservation, however many turns start at once", async ({
      world,
    }) => {
      const limit = 10 * (RESERVED + 2);
      await configure(world, { tokens: limit });
      const started = await Promise.allSettled(times(64, (n) => startAtOnce(world, { session: `chat:${n}` })));
      const running = started.flatMap((one) => (one.status === "fulfilled" && one.value ? [one.value] : []));
      expect(running).toHaveLength(10);
      expect(await tokensOf(world)).toEqual([0, limit]);
      expect(await claimedIds(world)).toEqual([]);
      // Each uses all that it reserved.
      for (const claimed of running) await world.end(claimed, { usage: used(RESERVED, 2) });
      expect(await tokensOf(world)).toEqual([limit, 0]);
      await claimedIds(world);
      const { items } = await world.store.listTurns({ limit: 100 });
      const ended = items.filter(({ status }) => status !== "queued");
      expect(ended).toHaveLength(64);
      expect(ended.filter(({ status }) => status === "completed")).toHaveLength(10);
      expect(ended.find(({ status }) => status === "failed")?.error?.name).toBe("budget-exceeded");
    });

    it("lets turns that wait for a reservation begin when others end and used less", async ({ world }) => {
      await configure(world, { tokens: RESERVED + 1 });
      const first = await startAtOnce(world, { session: "chat:a" });
      const waiting = await world.start({ session: "chat:b" });
      expect(await startAtOnce(world, { session: "chat:c" })).toBeUndefined();
      expect(await world.claim()).toMatchObject({ turns: [], nextDueInMs: HOUR });
      const told = world.told.length;
      if (first) await world.end(first, { usage: used(5, 0) });
      expect(world.told.slice(told).some(({ kind }) => kind === "turn")).toBe(true);
      const next = await world.claimNext();
      expect(next.turn.turnId).toBe(waiting.turnId);
      await world.end(next, { usage: used(5, 0) });
      expect((await world.claimNext()).turn.sessionId).toBe("chat:c");
    });

    it("does not let a turn that waits for it block other turns of the agent", async ({ world }) => {
      await configure(world, { tokens: 10, keys: ["crm"], then: "pause" });
      await runAtOnce(world, 10, { caller: "crm" });
      await world.start({ session: "chat:a", caller: "crm" });
      await world.start({ session: "chat:a" });
      const other = await world.start({ session: "chat:b" });
      expect(await claimedIds(world)).toEqual([other.turnId]);
      expect(await startAtOnce(world, { session: "chat:c" })).toBeDefined();
    });

    it("lets a turn begin behind many turns of its agent that wait for another budget", async ({ world }) => {
      await configure(world, { tokens: 10, keys: ["crm"], then: "pause" }, { name: "daily", tokens: RESERVED + 1 });
      await runAtOnce(world, 10, { caller: "crm" });
      for (let n = 0; n < 70; n++) await world.start({ session: `crm:${n}`, caller: "crm" });
      for (let n = 0; n < 2; n++) expect(await claimedIds(world)).toEqual([]);
      const first = await startAtOnce(world, { session: "chat:a" });
      if (!first) throw new Error("the turn was not claimed at once");
      const { turnId } = await world.start({ session: "chat:b" });
      expect(await claimedIds(world)).toEqual([]);
      await world.end(first, { usage: used(1, 0) });
      expect(await claimedIds(world)).toEqual([turnId]);
    });

    it("moves a turn that waits for it to another budget that has no room", async ({ world }) => {
      await configure(world, { tokens: 10, then: "pause" }, { name: "daily", per: "day", tokens: 10, then: "pause" });
      await runAtOnce(world, 10);
      const { turnId } = await world.start();
      expect(await claimedIds(world)).toEqual([]);
      const grant = (name: string) => world.store.grantBudget(name, { now: world.clock.now(), tokens: 5, by: "ops" });
      await grant("daily");
      expect(await claimedIds(world)).toEqual([]);
      await grant("hourly");
      expect(await claimedIds(world)).toEqual([turnId]);
    });

    it("lets the turns of other agents begin if those of a paused agent wait before them", async ({ world }) => {
      await configure(world, { tokens: RESERVED + 1 });
      const first = await startAtOnce(world, { session: "chat:a" });
      if (!first) throw new Error("the turn was not claimed at once");
      for (let n = 0; n < 6; n++) await world.start({ session: `one:${n}`, agent: "one" });
      const { turnId } = await world.start({ session: "chat:b" });
      expect(await claimedIds(world)).toEqual([]);
      await world.store.setPaused("one", { paused: true, now: world.clock.now(), streamKeep: 10 });
      await world.end(first, { usage: used(1, 0) });
      expect(await claimedIds(world)).toEqual([turnId]);
    });

    it("holds no turns any more after it was removed: each sweep lets some begin and reports that there are more", async ({
      world,
    }) => {
      await configure(world, { tokens: 10, then: "pause" });
      await runAtOnce(world, 10);
      for (let n = 0; n < 65; n++) await world.start({ session: `chat:${n}` });
      for (let n = 0; n < 2; n++) expect(await claimedIds(world)).toEqual([]);
      await configure(world);
      expect(await world.sweep()).toBe(2);
      expect(await claimedIds(world)).toHaveLength(65);
    });

    it("with `pause` accepts turns that begin with the next window, in their order", async ({ world }) => {
      await configure(world, { tokens: 1_000, then: "pause" });
      await runAtOnce(world, 1_000);
      const ids: string[] = [];
      for (const n of [1, 2, 3]) ids.push((await world.start({ session: `chat:${n}` })).turnId);
      expect(await startAtOnce(world, { session: "chat:4" })).toBeUndefined();
      expect(await world.claim()).toMatchObject({ turns: [], nextDueInMs: HOUR });
      await world.sweep();
      expect(await world.claim()).toMatchObject({ turns: [] });
      await world.clock.advance(HOUR);
      expect((await claimedIds(world)).slice(0, 3)).toEqual(ids);
    });

    it("with `refuse` fails turns that were queued before it was spent, with their events and the next turn", async ({
      world,
    }) => {
      await configure(world, { tokens: 10 });
      const [one, two] = [await world.start({ session: "chat:a" }), await world.start({ session: "chat:a" })];
      await runAtOnce(world, 10, { agent: "other" });
      expect(await world.claim()).toMatchObject({ turns: [] });
      for (const { turnId } of [one, two])
        expect(await world.store.getTurn(turnId)).toMatchObject({
          status: "failed",
          error: { name: "budget-exceeded" },
        });
      expect(await tokensOf(world)).toEqual([10, 0]);
      expect(world.store.agentCounts("main")).toMatchObject({ queued: 0, running: 0, failing: false });
    });

    it("applies the one with the least room, if several apply", async ({ world }) => {
      await configure(world, { tokens: 1_000 }, { name: "daily", per: "day", tokens: 10 });
      await runAtOnce(world, 10);
      const refused = world.store.startTurn(world.order());
      await expect(refused).rejects.toMatchObject({ extra: { budget: { name: "daily" } } });
    });

    it("releases the reservation of a turn that fails, is returned, loses its lease or is deleted", async ({
      world,
    }) => {
      await configure(world, { tokens: 1e6 });
      const start = async (session: string) => {
        const claimed = await startAtOnce(world, { session });
        if (!claimed) throw new Error("the turn was not claimed at once");
        return claimed;
      };
      await world.end(await start("chat:a"), { status: "failed" });
      expect(await tokensOf(world)).toEqual([0, 0]);
      await world.release(await start("chat:b"), 1_000, used(1, 2));
      expect(await tokensOf(world)).toEqual([3, 0]);
      await start("chat:c");
      await world.store.deleteSession("chat:c", world.clock.now());
      expect(await tokensOf(world)).toEqual([3, 0]);
      const lost = await start("chat:d");
      await world.clock.advance(LEASE_MS + 1);
      await world.sweep();
      expect(await tokensOf(world)).toEqual([3, 0]);
      await world.end(lost, { usage: used(10, 10) });
      expect(await tokensOf(world)).toEqual([23, 0]);
      await world.store.cancelTurn(lost.turn.turnId, world.clock.now());
      expect(await tokensOf(world)).toEqual([23, 0]);
    });
  });

  describe("a further step of a turn", () => {
    const step = (tokens: number, next = 50) => ({ used: { tokens, cost: 0 }, next: { tokens: next, cost: 0 } });

    it("replaces the reservation of the turn", async ({ world }) => {
      await configure(world, { tokens: 1_000 });
      const claimed = await startAtOnce(world);
      if (!claimed) throw new Error("the turn was not claimed at once");
      expect(await world.store.extendBudget(claimed.claim, step(70))).toBeUndefined();
      expect(await tokensOf(world)).toEqual([0, 120]);
      expect(await world.store.extendBudget(claimed.claim, step(900))).toBeUndefined();
      expect(await tokensOf(world)).toEqual([0, 950]);
      await world.end(claimed, { usage: used(900, 10) });
      expect(await tokensOf(world)).toEqual([910, 0]);
    });

    it("waits if its budget has no room beside the other turns, and is refused if it is spent", async ({ world }) => {
      await configure(world, { tokens: 1_000 });
      const [one, two] = [await startAtOnce(world), await startAtOnce(world, { session: "chat:b" })];
      if (!one || !two) throw new Error("the turns were not claimed at once");
      expect(await world.store.extendBudget(one.claim, step(500))).toBeUndefined();
      const wait = {
        budget: "hourly",
        resetsAt: NEXT_HOUR,
        detail:
          "The budget `hourly` of 1000 tokens per hour is reserved by running turns. Some of it is free again when they end.",
        isSpent: false,
      };
      expect(await world.store.extendBudget(two.claim, step(450))).toEqual(wait);
      expect(await world.store.extendBudget(two.claim, step(450))).toEqual(wait);
      // A turn that waits keeps only its use.
      expect(await tokensOf(world)).toEqual([0, 550 + 450]);
      await world.end(one, { usage: used(500, 0) });
      expect(await world.store.extendBudget(two.claim, step(450))).toBeUndefined();
      expect(await world.store.extendBudget(two.claim, step(500))).toMatchObject({ budget: "hourly", isSpent: true });
    });

    it("within the reservation of its turn is allowed although the budget is reserved", async ({ world }) => {
      await configure(world, { tokens: RESERVED + 3 });
      const [one] = [await startAtOnce(world), await startAtOnce(world, { session: "chat:b" })];
      if (!one) throw new Error("the turn was not claimed at once");
      expect(await world.store.extendBudget(one.claim, step(2))).toBeUndefined();
      expect(await tokensOf(world)).toEqual([0, 52 + RESERVED + 2]);
    });

    it("is refused if all turns wait for each other and have used the budget together", async ({ world }) => {
      await configure(world, { tokens: 150 });
      const [one, two] = [await startAtOnce(world), await startAtOnce(world, { session: "chat:b" })];
      if (!one || !two) throw new Error("the turns were not claimed at once");
      expect(await world.store.extendBudget(one.claim, step(80))).toMatchObject({ isSpent: false });
      expect(await world.store.extendBudget(two.claim, step(80))).toMatchObject({ isSpent: true });
      await world.end(two, { usage: used(80, 0) });
      expect(await world.store.extendBudget(one.claim, step(80))).toMatchObject({ isSpent: true });
      await world.end(one, { usage: used(80, 0) });
      expect(await tokensOf(world)).toEqual([160, 0]);
    });

    it("is never refused to a turn without a budget, or without a valid claim", async ({ world }) => {
      await configure(world, { tokens: 10, agents: ["other"] });
      const claimed = await startAtOnce(world);
      if (!claimed) throw new Error("the turn was not claimed at once");
      expect(await world.store.extendBudget(claimed.claim, step(1e9))).toBeUndefined();
      await configure(world, { tokens: 10 });
      expect(await world.store.extendBudget(claimed.claim, step(1e9))).toMatchObject({ budget: "hourly" });
      await world.end(claimed);
      expect(await world.store.extendBudget(claimed.claim, step(1e9))).toBeUndefined();
    });
  });
}
