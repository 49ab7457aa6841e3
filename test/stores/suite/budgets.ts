// biome-ignore-all lint/suspicious/noThenProperty: the key of the configuration.
import { describe, expect } from "vitest";
import type { BudgetRule, BudgetStatus, ClaimedTurn } from "#store/store.ts";
import { START } from "#test/harness/clock.ts";
import { configureBudgets, RESERVED } from "../budgets.ts";
import { claimCompaction, endCompaction, startCompaction } from "../compactions.ts";
import { claimBeat, planBeat, queueEvent, startBeat, toldNews, waiting } from "../inbound.ts";
import { testsOn } from "../tests-on.ts";
import {
  deliveryOf,
  type Engine,
  LEASE_MS,
  refusal,
  times,
  used,
  usedMore,
  type World,
  type WorldOptions,
} from "../world.ts";

const HOUR = 3_600_000;
/** The hours of the suite's clock begin with it. */
const NEXT_HOUR = START + HOUR;

async function configure(world: World, ...rules: Partial<BudgetRule>[]): Promise<void> {
  await configureBudgets(world.store, rules);
}

async function statusOf(world: World, name = "hourly"): Promise<BudgetStatus> {
  const found = (await world.store.listBudgets()).find(({ rule }) => rule.name === name);
  if (!found) throw new Error(`there is no budget ${name}`);
  return found;
}
async function tokensOf(world: World, name?: string) {
  const { tokens } = await statusOf(world, name);
  return [tokens?.used, tokens?.reserved];
}

function claimAtOnce(world: World) {
  return { now: world.clock.now(), node: "node_a", leaseMs: LEASE_MS, replyMessageId: world.newId("msg") };
}
async function startAtOnce(world: World, options: WorldOptions = {}): Promise<ClaimedTurn | undefined> {
  return (await world.store.startTurn(world.order({ claim: claimAtOnce(world), ...options }))).claimed;
}
async function runAtOnce(world: World, tokens: number, options: WorldOptions = {}): Promise<void> {
  const claimed = await startAtOnce(world, { session: world.newId("chat"), ...options });
  if (!claimed) throw new Error("the turn was not claimed at once");
  await world.end(claimed, { usage: used(tokens, 0) });
}
async function claimedIds(world: World): Promise<string[]> {
  return (await world.claim()).turns.map(({ turn }) => turn.turnId);
}

function newsOfBudgets(world: World) {
  return toldNews(world).filter(({ name }) => name.startsWith("budget."));
}

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
