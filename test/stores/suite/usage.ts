import { describe, expect } from "vitest";
import { START } from "#test/harness/clock.ts";
import { testsOn } from "../tests-on.ts";
import { type Engine, LEASE_MS, used, type Wish, type World } from "../world.ts";

const HOUR = 3_600_000;

const run = async (
  world: World,
  wish: Wish,
  usage = used(1, 1),
  how: "completed" | "failed" | "cancelled" = "completed",
) => {
  await world.start(wish);
  await world.end(await world.claimNext(), { status: how, usage });
};

const NO_MORE = { cached: 0, reasoning: 0, cost: 0 };

export const usageTests = (engine: Engine): void => {
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
      expect(await world.store.readUsage({ from: 0, to: Infinity, agent: "other" })).toMatchObject([
        { agent: "other", attempts: 1 },
      ]);
    });

    it("reads the hours from one time to another, however far apart they are", async ({ world }) => {
      const hours: number[] = [];
      for (const later of [0, HOUR, 47 * HOUR, HOUR, 24 * HOUR]) {
        await world.clock.advance(later);
        hours.push(world.clock.now());
        await run(world, {}, used(1, 1));
      }
      const read = async (from: number, to: number) =>
        (await world.store.readUsage({ from, to, agent: "main" })).map(({ hour }) => hour);
      expect(await read(0, Infinity)).toEqual(hours);
      expect(await read((hours[0] ?? 0) + 1, hours[3] ?? 0)).toEqual(hours.slice(1, 3));
      expect(await read(hours[1] ?? 0, (hours[1] ?? 0) + 1)).toEqual(hours.slice(1, 2));
    });

    it("counts how each turn ended, and every attempt: one that will be made again ends no turn", async ({ world }) => {
      await run(world, {}, used(1, 0), "completed");
      await run(world, {}, used(1, 0), "failed");
      await run(world, {}, used(1, 0), "cancelled");
      await world.start();
      await world.release(await world.claimNext(), 0, used(1, 0));
      await world.end(await world.claimNext(), { usage: used(1, 0) });
      const [count] = await world.store.readUsage({ from: 0, to: Infinity });
      expect(count).toMatchObject({ messages: 4, attempts: 5, completed: 2, failed: 1, cancelled: 1, input: 5 });
    });

    it("changes no counters that it has handed out", async ({ world }) => {
      await run(world, {});
      const before = await world.store.readUsage({ from: 0, to: Infinity });
      expect(before).toMatchObject([{ messages: 1, attempts: 1 }]);
      await run(world, {});
      expect(before).toMatchObject([{ messages: 1, attempts: 1 }]);
    });

    it("counts the turn but no attempt where none reached a backend", async ({ world }) => {
      await world.start();
      await world.end(await world.claimNext(), { status: "failed" });
      const { turnId } = await world.start();
      await world.store.cancelTurn(turnId, world.clock.now());
      expect(await world.store.readUsage({ from: 0, to: Infinity })).toMatchObject([
        { messages: 2, failed: 1, cancelled: 1, attempts: 0, latencyMs: 0, input: 0, output: 0 },
      ]);
    });

    it("counts a message and a turn's end under the model that the order names for it", async ({ world }) => {
      await world.start({ countedModel: "small" });
      await world.store.failQueuedTurns("main", { name: "agent-removed", detail: undefined }, world.clock.now());
      expect(await world.store.readUsage({ from: 0, to: Infinity })).toMatchObject([
        { model: "small", messages: 1, failed: 1 },
      ]);
    });

    it("counts an attempt once whose lease ended while it ran, however the turn went on", async ({ world }) => {
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

    it("counts nothing that is told with somebody else's claim", async ({ world }) => {
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
      expect(await sum("model", { agent: "other" })).toEqual([["fast", 1, 3]]);
      expect(await sum("model", { from: START + 1 })).toEqual([["echo", 1, 5]]);
      expect(await sum("model", { to: START })).toEqual([]);
      const [one] = await world.store.sumUsage({ from: START + 1, to: Infinity, by: "caller" });
      const rest = { messages: 1, completed: 1, failed: 0, cancelled: 0, attempts: 1, ...NO_MORE };
      expect(one).toEqual({ key: "ops", counts: { ...rest, latencyMs: 50, input: 5, output: 6 }, untold: 0 });
    });

    it("tells of a sum how many completed turns are of counters without tokens", async ({ world }) => {
      const base = { agent: "main", surface: "rest", caller: "ci" } as const;
      const untold = async (by: "agent" | "caller" | "hour") =>
        (await world.store.sumUsage({ from: 0, to: Infinity, by })).map((sum) => [sum.key, sum.untold]).sort();
      await run(world, { ...base, session: "chat:a" }, used(0, 0, "echo", 10));
      await run(world, { ...base, session: "chat:a" }, used(0, 0, "echo", 10));
      await run(world, { ...base, session: "chat:b", agent: "other" }, used(3, 0, "echo", 30));
      expect(await untold("caller")).toEqual([["ci", 2]]);
      expect(await untold("agent")).toEqual([
        ["main", 2],
        ["other", 0],
      ]);
      await world.start({ ...base, session: "chat:c", agent: "third" });
      await world.end(await world.claimNext(), { status: "failed", usage: used(0, 0) });
      expect(await untold("caller")).toEqual([["ci", 2]]);
      await world.clock.advance(HOUR);
      await run(world, { ...base, session: "chat:a" }, used(0, 4, "echo", 10));
      expect(await untold("hour")).toEqual([
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

    it("counts what a summary used as an attempt, and nothing else of it", async ({ world }) => {
      const of = { agent: "main", surface: "rpc", caller: "ops" } as const;
      const now = world.clock.now();
      await world.store.countUsage({ now, ...of, ...used(30, 4, "echo", 20) });
      await world.store.countUsage({ now, ...of, ...used(1, 1, "echo", 5, { cached: 1, reasoning: 0, cost: 70 }) });
      const nothing = { messages: 0, completed: 0, failed: 0, cancelled: 0 };
      const more = { cached: 1, reasoning: 0, cost: 70 };
      const counts = { ...nothing, attempts: 2, latencyMs: 25, input: 31, output: 5, ...more };
      expect(await world.store.readUsage({ from: 0, to: Infinity })).toEqual([
        { hour: START, ...of, model: "echo", ...counts },
      ]);
      expect(await world.store.sumUsage({ from: 0, to: Infinity, by: "caller" })).toEqual([
        { key: "ops", counts, untold: 0 },
      ]);
    });

    it("forgets counters past their days when it sweeps", async ({ world }) => {
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
};
