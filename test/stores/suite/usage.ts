import { describe, expect, it } from "vitest";
import { START } from "#test/harness/clock.ts";
import { type Engine, openWorld, used, type Wish, type World } from "../world.ts";

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

export const usageTests = (engine: Engine): void => {
  describe("counting usage", () => {
    it("counts by hour, agent, model, surface and caller", async () => {
      await using world = await openWorld(engine);
      const base = { session: "chat:a", agent: "main", surface: "rest", caller: "ci" } as const;
      await run(world, base, used(1, 2, "echo", 10));
      await run(world, base, used(3, 4, "echo", 30));
      const hour = START;
      const count = { hour, agent: "main", model: "echo", surface: "rest", caller: "ci", failed: 0, cancelled: 0 };
      expect(await world.store.readUsage({ from: START, to: START + 1 })).toEqual([
        { ...count, attempts: 2, completed: 2, latencyMs: 40, input: 4, output: 6 },
      ]);
      await run(world, { ...base, surface: "rpc" });
      await run(world, { ...base, caller: "ops" });
      await run(world, { ...base, session: "chat:b", agent: "other" });
      await run(world, base, used(1, 1, "fast"));
      await world.clock.advance(HOUR);
      await run(world, base);
      const all = await world.store.readUsage({ from: 0, to: Infinity });
      expect(all).toHaveLength(6);
      expect(all.filter(({ hour }) => hour === START + HOUR)).toHaveLength(1);
      expect(await world.store.readUsage({ from: 0, to: Infinity, agent: "other" })).toMatchObject([
        { agent: "other", attempts: 1 },
      ]);
    });

    it("counts how each attempt ended; one that will be made again has failed", async () => {
      await using world = await openWorld(engine);
      await run(world, {}, used(1, 0), "completed");
      await run(world, {}, used(1, 0), "failed");
      await run(world, {}, used(1, 0), "cancelled");
      await world.start();
      await world.release(await world.claimNext(), 0, used(1, 0));
      await world.end(await world.claimNext(), { usage: used(1, 0) });
      const [count] = await world.store.readUsage({ from: 0, to: Infinity });
      expect(count).toMatchObject({ attempts: 5, completed: 2, failed: 2, cancelled: 1, input: 5 });
    });

    it("counts nothing for an attempt that reached no backend", async () => {
      await using world = await openWorld(engine);
      await world.start();
      await world.end(await world.claimNext(), { status: "failed" });
      const { turnId } = await world.start();
      await world.store.cancelTurn(turnId, world.clock.now());
      expect(await world.store.readUsage({ from: 0, to: Infinity })).toEqual([]);
    });

    it("counts nothing for a repeat", async () => {
      await using world = await openWorld(engine);
      await run(world, { key: "k" });
      const before = await world.store.readUsage({ from: 0, to: Infinity });
      await world.start({ key: "k" });
      expect(await world.store.readUsage({ from: 0, to: Infinity })).toEqual(before);
    });

    it("reads the hours from the first on, up to the last and without it", async () => {
      await using world = await openWorld(engine);
      for (let n = 0; n < 3; n++) {
        await run(world, {});
        await world.clock.advance(HOUR);
      }
      const hours = async (from: number, to: number) =>
        (await world.store.readUsage({ from, to })).map(({ hour }) => (hour - START) / HOUR);
      expect(await hours(START, START + 3 * HOUR)).toEqual([0, 1, 2]);
      expect(await hours(START, START + HOUR)).toEqual([0]);
      expect(await hours(START + HOUR, START + 2 * HOUR)).toEqual([1]);
      expect(await hours(START + 1, START + 2 * HOUR + 1)).toEqual([1, 2]);
    });

    it("forgets counters past their days when it sweeps", async () => {
      await using world = await openWorld(engine);
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
