import { describe, expect } from "vitest";
import { START } from "#test/harness/clock.ts";
import { claimCompaction } from "../compactions.ts";
import { testsOn } from "../tests-on.ts";
import { type Engine, LEASE_MS, used, usedMore, type World, type WorldOptions } from "../world.ts";

const HOUR = 3_600_000;

async function run(
  world: World,
  options: WorldOptions,
  usage = used(1, 1),
  how: "completed" | "failed" | "cancelled" = "completed",
) {
  await world.start(options);
  await world.end(await world.claimNext(), { status: how, usage });
}

const NO_MORE = { cached: 0, reasoning: 0, cost: 0 };

const NOTHING = { input: 0, output: 0 };

export function usageTests(engine: Engine): void {
  const it = testsOn(engine);
  describe("counting usage", () => {
    it("counts by hour, agent, model, surface and caller", async ({ world }) => {
      const base = { session: "chat:a", agent: "main", surface: "rest", caller: "ci" } as const;
      await run(world, base, used(1, 2, "echo", 10));
      await run(world, base, used(3, 4, "echo", 30));
      const hour = START;
      const of = { hour, agent: "main", model: "echo", surface: "rest", caller: "ci" };
      const count = { ...of, messages: 2, failed: 0, cancelled: 0, ...NO_MORE };
      expect(await world.store.readUsage({ from: START, to: START + 1 })).toEqual([
        { ...count, attempts: 2, completed: 2, latencyMs: 40, input: 4, output: 6 },
      ]);
      await run(world, { ...base, surface: "rpc" });
      await run(world, { ...base, caller: "ops" });
      await run(world, { ...base, session: "chat:b", agent: "other" });
      await run(world, { ...base, model: "fast" }, used(1, 1, "fast"));
      await world.clock.advance(HOUR);
      await run(world, base);
      const all = await world.store.readUsage({ from: 0, to: Infinity });
      expect(all).toHaveLength(6);
      expect(all.filter(({ hour }) => hour === START + HOUR)).toHaveLength(1);
      expect(await world.store.readUsage({ from: 0, to: Infinity, agents: ["other"] })).toMatchObject([
        { agent: "other", attempts: 1 },
      ]);
    });

    it("reads the hours of a period, however long it is", async ({ world }) => {
      const hours: number[] = [];
      for (const later of [0, HOUR, 47 * HOUR, HOUR, 24 * HOUR]) {
        await world.clock.advance(later);
        hours.push(world.clock.now());
        await run(world, {}, used(1, 1));
      }
      const read = async (from: number, to: number) =>
        (await world.store.readUsage({ from, to, agents: ["main"] })).map(({ hour }) => hour);
      expect(await read(0, Infinity)).toEqual(hours);
      expect(await read((hours[0] ?? 0) + 1, hours[3] ?? 0)).toEqual(hours.slice(1, 3));
      expect(await read(hours[1] ?? 0, (hours[1] ?? 0) + 1)).toEqual(hours.slice(1, 2));
    });

    it("counts how each turn ended, and every attempt; an attempt that is retried does not end the turn", async ({
      world,
    }) => {
      await run(world, {}, used(1, 0), "completed");
      await run(world, {}, used(1, 0), "failed");
      await run(world, {}, used(1, 0), "cancelled");
      await world.start();
      await world.release(await world.claimNext(), 0, used(1, 0));
      await world.end(await world.claimNext(), { usage: used(1, 0) });
      const [count] = await world.store.readUsage({ from: 0, to: Infinity });
      expect(count).toMatchObject({ messages: 4, attempts: 5, completed: 2, failed: 1, cancelled: 1, input: 5 });
    });

    it("does not change counters that it has returned", async ({ world }) => {
      await run(world, {});
      const before = await world.store.readUsage({ from: 0, to: Infinity });
      expect(before).toMatchObject([{ messages: 1, attempts: 1 }]);
      await run(world, {});
      expect(before).toMatchObject([{ messages: 1, attempts: 1 }]);
    });

    it("counts the turn but no attempt if none reached a backend", async ({ world }) => {
      await world.start();
      await world.end(await world.claimNext(), { status: "failed" });
      const { turnId } = await world.start();
      await world.store.cancelTurn(turnId, world.clock.now());
      expect(await world.store.readUsage({ from: 0, to: Infinity })).toMatchObject([
        { messages: 2, failed: 1, cancelled: 1, attempts: 0, latencyMs: 0, input: 0, output: 0 },
      ]);
    });

    it("counts a message and the end of its turn under the model that the order names", async ({ world }) => {
      await world.start({ countedModel: "small" });
      await world.store.failQueuedTurns("main", { name: "agent-removed", detail: undefined }, world.clock.now());
      expect(await world.store.readUsage({ from: 0, to: Infinity })).toMatchObject([
        { model: "small", messages: 1, failed: 1 },
      ]);
    });

    it("counts an attempt once if its lease expired while it ran, however the turn continued", async ({ world }) => {
      await world.start();
      const slow = await world.claimNext();
      await world.clock.advance(LEASE_MS);
      await world.sweep();
      expect(await world.end(await world.claimNext(), { reply: "second", usage: used(2, 2) })).toBe(true);
      expect(await world.end(slow, { reply: "late", usage: used(7, 1) })).toBe(false);
      expect(await world.end(slow, { reply: "late", usage: used(7, 1) })).toBe(false);
      expect(await world.store.readUsage({ from: 0, to: Infinity })).toMatchObject([
        { completed: 1, attempts: 2, input: 9, output: 3 },
      ]);
      expect(await world.store.getSession("chat:a")).toMatchObject({ usage: { input: 2, output: 2 } });
    });

    it("counts nothing for a claim that is not the caller's", async ({ world }) => {
      await world.start();
      const { claim } = await world.claimNext();
      await world.store.deleteSession("chat:a", world.clock.now());
      for (const wrong of [{ node: "node_b" }, { fence: claim.fence + 1 }, { turnId: "turn_other" }]) {
        await world.end({ claim: { ...claim, ...wrong } }, { usage: used(1, 1) });
      }
      expect(await world.store.readUsage({ from: 0, to: Infinity })).toMatchObject([{ attempts: 0 }]);
    });

    it("adds up by each of the keys", async ({ world }) => {
      const base = { agent: "main", surface: "rest", caller: "ci" } as const;
      await run(world, { ...base, session: "chat:a" }, used(1, 2, "echo", 10));
      await run(
        world,
        { ...base, session: "chat:b", agent: "other", surface: "rpc", model: "fast" },
        used(3, 4, "fast", 30),
      );
      await world.clock.advance(24 * HOUR);
      await run(world, { ...base, session: "chat:c", caller: "ops" }, used(5, 6, "echo", 50));
      const sum = async (by: "agent" | "model" | "surface" | "caller" | "hour" | "day", query = {}) =>
        (await world.store.sumUsage({ from: 0, to: Infinity, by, ...query }))
          .map(({ key, counts }) => [key, counts.attempts, counts.input])
          .sort();
      expect(await sum("agent")).toEqual([
        ["main", 2, 6],
        ["other", 1, 3],
      ]);
      expect(await sum("model")).toEqual([
        ["echo", 2, 6],
        ["fast", 1, 3],
      ]);
      expect(await sum("surface")).toEqual([
        ["rest", 2, 6],
        ["rpc", 1, 3],
      ]);
      expect(await sum("caller")).toEqual([
        ["ci", 2, 4],
        ["ops", 1, 5],
      ]);
      expect(await sum("hour")).toEqual([
        [START, 2, 4],
        [START + 24 * HOUR, 1, 5],
      ]);
      const day = START - (START % (24 * HOUR));
      expect(await sum("day")).toEqual([
        [day, 2, 4],
        [day + 24 * HOUR, 1, 5],
      ]);
      expect(await sum("model", { agents: ["other"] })).toEqual([["fast", 1, 3]]);
      expect(await sum("agent", { agents: ["other", "main", "unknown"] })).toEqual(await sum("agent"));
      expect(await sum("agent", { agents: [] })).toEqual([]);
      expect(await sum("model", { from: START + 1 })).toEqual([["echo", 1, 5]]);
      expect(await sum("model", { to: START })).toEqual([]);
      const [one] = await world.store.sumUsage({ from: START + 1, to: Infinity, by: "caller" });
      const rest = { messages: 1, completed: 1, failed: 0, cancelled: 0, attempts: 1, ...NO_MORE };
      expect(one).toEqual({ key: "ops", counts: { ...rest, latencyMs: 50, input: 5, output: 6 }, withoutUsage: 0 });
    });

    it("returns for a sum the number of completed turns that are in counters without tokens", async ({ world }) => {
      const base = { agent: "main", surface: "rest", caller: "ci" } as const;
      const withoutUsage = async (by: "agent" | "caller" | "hour") =>
        (await world.store.sumUsage({ from: 0, to: Infinity, by })).map((sum) => [sum.key, sum.withoutUsage]).sort();
      await run(world, { ...base, session: "chat:a" }, used(0, 0, "echo", 10));
      await run(world, { ...base, session: "chat:a" }, used(0, 0, "echo", 10));
      await run(world, { ...base, session: "chat:b", agent: "other" }, used(3, 0, "echo", 30));
      expect(await withoutUsage("caller")).toEqual([["ci", 2]]);
      expect(await withoutUsage("agent")).toEqual([
        ["main", 2],
        ["other", 0],
      ]);
      await world.start({ ...base, session: "chat:c", agent: "third" });
      await world.end(await world.claimNext(), { status: "failed", usage: used(0, 0) });
      expect(await withoutUsage("caller")).toEqual([["ci", 2]]);
      await world.clock.advance(HOUR);
      await run(world, { ...base, session: "chat:a" }, used(0, 4, "echo", 10));
      expect(await withoutUsage("hour")).toEqual([
        [START, 2],
        [START + HOUR, 0],
      ]);
    });

    it("counts nothing for a repeat", async ({ world }) => {
      await run(world, { key: "k" });
      const before = await world.store.readUsage({ from: 0, to: Infinity });
      await world.start({ key: "k" });
      expect(await world.store.readUsage({ from: 0, to: Infinity })).toEqual(before);
    });

    it("counts the usage of a summary as an attempt, and nothing else of it", async ({ world }) => {
      const of = { agent: "main", surface: "rpc", caller: "ops" } as const;
      await world.start({ ...of, caller: "ci" });
      await world.end(await world.claimNext());
      const first = await claimCompaction(world);
      await world.release(first, 0, used(30, 4, "echo", 20));
      const usage = used(1, 1, "echo", 5, { cached: 1, reasoning: 0, cost: 70 });
      await world.end(await world.claimNext(), { status: "failed", usage });
      expect((await world.store.getSession("chat:a"))?.usage).toEqual({ input: 0, output: 0 });
      const nothing = { messages: 0, completed: 0, failed: 0, cancelled: 0 };
      const more = { cached: 1, reasoning: 0, cost: 70 };
      const counts = { ...nothing, attempts: 2, latencyMs: 25, input: 31, output: 5, ...more };
      expect(await world.store.readUsage({ from: 0, to: Infinity })).toContainEqual({
        hour: START,
        ...of,
        model: "echo",
        ...counts,
      });
      const sums = await world.store.sumUsage({ from: 0, to: Infinity, by: "caller" });
      expect(sums).toContainEqual({ key: "ops", counts, withoutUsage: 0 });
    });

    it("erases old counters in a sweep", async ({ world }) => {
      await run(world, {});
      await world.clock.advance(HOUR);
      await run(world, {});
      await world.sweep({ usageBefore: START + HOUR - 1 });
      expect(await world.store.readUsage({ from: 0, to: Infinity })).toHaveLength(2);
      await world.sweep({ usageBefore: START + HOUR });
      const kept = await world.store.readUsage({ from: 0, to: Infinity });
      expect(kept.map(({ hour }) => hour)).toEqual([START + HOUR]);
    });
  });

  describe("cached and reasoning tokens, costs, and the model that answered", () => {
    it("are added up in the turn, its entry, its session and the counters", async ({ world }) => {
      const { turnId } = await world.start();
      await world.release(await world.claimNext(), 0, usedMore(100, 0, 12_345));
      const first = { input: 101, output: 1, more: { cached: 100, reasoning: 0, cost: 12_345 } };
      expect((await world.store.getTurn(turnId))?.usage).toEqual(first);
      const second = await world.claimNext();
      expect(second.turn.usage).toEqual(first);
      await world.end(second, { reply: "hi", usage: usedMore(0, 30, 1) });
      const usage = { input: 102, output: 32, more: { cached: 100, reasoning: 30, cost: 12_346 } };
      expect((await world.store.getTurn(turnId))?.usage).toEqual(usage);
      const entries = await world.entries();
      expect(entries.at(-1)).toMatchObject({ name: "turn.completed", usage });
      expect(world.told.flatMap((what) => (what.kind === "entries" ? what.entries : []))).toEqual(entries);
      // A turn without them adds nothing.
      await run(world, {}, used(1, 1));
      const sum = { input: 103, output: 33, more: usage.more };
      expect((await world.store.getSession("chat:a"))?.usage).toEqual(sum);
      expect((await world.store.listSessions({ limit: 1 })).items[0]?.usage).toEqual(sum);
      const counted = { attempts: 3, input: 103, output: 33, ...usage.more };
      expect(await world.store.readUsage({ from: 0, to: Infinity })).toMatchObject([counted]);
      expect(await world.store.sumUsage({ from: 0, to: Infinity, by: "model" })).toMatchObject([{ counts: counted }]);
    });

    it("are stored for a turn that failed, or was cancelled when it was released", async ({ world }) => {
      const failed = await world.start();
      await world.end(await world.claimNext(), { status: "failed", usage: usedMore(1, 2, 3) });
      const cancelled = await world.start();
      const claimed = await world.claimNext();
      await world.store.cancelTurn(cancelled.turnId, world.clock.now());
      await world.release(claimed, 0, usedMore(4, 5, 6));
      const usageOf = async (turnId: string) => (await world.store.getTurn(turnId))?.usage;
      const [one, other] = [usedMore(1, 2, 3).usage, usedMore(4, 5, 6).usage];
      expect([await usageOf(failed.turnId), await usageOf(cancelled.turnId)]).toEqual([one, other]);
      const ends = (await world.entries()).filter(({ name }) => name === "turn.failed" || name === "turn.cancelled");
      expect(ends).toMatchObject([{ usage: one }, { usage: other }]);
    });

    it("are absent if they are 0, and a new session with the same id has none of the earlier one", async ({
      world,
    }) => {
      await run(world, {}, usedMore(1, 1, 1));
      await world.store.deleteSession("chat:a", world.clock.now());
      const { turnId } = await world.start();
      await world.end(await world.claimNext());
      expect((await world.store.getTurn(turnId))?.usage).toEqual(NOTHING);
      expect((await world.store.getSession("chat:a"))?.usage).toEqual(NOTHING);
      expect((await world.entries()).at(-1)).toMatchObject({ usage: NOTHING });
    });

    it("include costs as large as a number allows, without rounding", async ({ world }) => {
      const half = (Number.MAX_SAFE_INTEGER - 1) / 2;
      await run(world, {}, usedMore(1, 1, half));
      await run(world, {}, usedMore(1, 1, half));
      expect((await world.store.getSession("chat:a"))?.usage.more?.cost).toBe(2 * half);
      const [counts] = await world.store.sumUsage({ from: 0, to: Infinity, by: "agent" });
      expect(counts?.counts.cost).toBe(2 * half);
    });

    it("include the name of the model once the turn has ended, also in its entry and its counters", async ({
      world,
    }) => {
      const asked = await world.start({ model: "fast" });
      await world.release(await world.claimNext(), 0, used(1, 0, "small"));
      const again = await world.claimNext();
      // It is read again.
      expect(again.turn.model).toBe("fast");
      expect((await world.store.getTurn(asked.turnId))?.model).toBe("fast");
      await world.end(again, { reply: "hi", usage: used(2, 0, "slow"), model: "slow" });
      expect((await world.store.getTurn(asked.turnId))?.model).toBe("slow");
      const unnamed = await world.start();
      await world.end(await world.claimNext(), { status: "failed", usage: used(4, 0, "ü"), model: "ü" });
      expect((await world.store.getTurn(unnamed.turnId))?.model).toBe("ü");
      const same = await world.start({ model: "fast" });
      await world.end(await world.claimNext(), { status: "cancelled", usage: used(8, 0, "fast") });
      expect((await world.store.getTurn(same.turnId))?.model).toBe("fast");
      const ends = (await world.entries()).flatMap((entry) => ("usage" in entry ? [[entry.name, entry.model]] : []));
      expect(ends).toEqual([
        ["turn.completed", "slow"],
        ["turn.failed", "ü"],
        ["turn.cancelled", undefined],
      ]);
      const sums = await world.store.sumUsage({ from: 0, to: Infinity, by: "model" });
      expect(sums.map(({ key, counts }) => [key, counts.input, counts.attempts]).sort()).toEqual([
        ["echo", 0, 0],
        ["fast", 8, 1],
        ["slow", 2, 1],
        ["small", 1, 1],
        ["ü", 4, 1],
      ]);
      expect(sums.find(({ key }) => key === "slow")?.counts).toMatchObject({ completed: 1, messages: 0 });
    });
  });
}
