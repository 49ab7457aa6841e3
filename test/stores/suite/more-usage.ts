import { describe, expect } from "vitest";
import { testsOn } from "../tests-on.ts";
import { type Engine, used, usedMore, type Wish, type World } from "../world.ts";

const NOTHING = { input: 0, output: 0 };

const run = async (world: World, wish: Wish, usage: ReturnType<typeof used>) => {
  await world.start(wish);
  await world.end(await world.claimNext(), { usage });
};

export const moreUsageTests = (engine: Engine): void => {
  const it = testsOn(engine);
  describe("cached and reasoning tokens, costs, and which model answered", () => {
    it("adds cached and reasoning tokens and costs up: in the turn, its entry, its session and the counters", async ({
      world,
    }) => {
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

    it("keeps them of a turn that failed, or was cancelled as it was given back", async ({ world }) => {
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

    it("has none of them where they are 0, and a session that begins anew has none of the one before", async ({
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

    it("adds up costs that are as large as a number can be without a rounding", async ({ world }) => {
      const half = (Number.MAX_SAFE_INTEGER - 1) / 2;
      await run(world, {}, usedMore(1, 1, half));
      await run(world, {}, usedMore(1, 1, half));
      expect((await world.store.getSession("chat:a"))?.usage.more?.cost).toBe(2 * half);
      const [counts] = await world.store.sumUsage({ from: 0, to: Infinity, by: "agent" });
      expect(counts?.counts.cost).toBe(2 * half);
    });

    it("names the model that answered once the turn has ended, in its entry and its counters too", async ({
      world,
    }) => {
      const asked = await world.start({ model: "fast" });
      await world.release(await world.claimNext(), 0, used(1, 0, "small"));
      const again = await world.claimNext();
      // It is asked for again.
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
};
