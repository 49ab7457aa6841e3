import { describe, expect } from "vitest";
import { testsOn } from "../tests-on.ts";
import { deliveryOf, type Engine, type World } from "../world.ts";

/** Starts a turn with a delivery in a ring of three, in a session of its own. */
const record = (world: World, n: number, recorder = { entries: 3, bytes: 1e9, refused: 3 }, body?: string) =>
  world.start({ session: `chat:${n}`, delivery: deliveryOf(`dlv_${n}`, body), recorder });

const kept = async (world: World, count: number): Promise<number[]> => {
  const found: number[] = [];
  for (let n = 0; n < count; n++) if (await world.store.getDelivery(`dlv_${n}`)) found.push(n);
  return found;
};

export const recorderTests = (engine: Engine): void => {
  const it = testsOn(engine);
  describe("recording deliveries", () => {
    it("lets the oldest go when there are more than it keeps", async ({ world }) => {
      for (let n = 0; n < 5; n++) {
        await record(world, n);
        await world.end(await world.claimNext());
      }
      expect(await kept(world, 5)).toEqual([2, 3, 4]);
      expect(world.store.stats().deliveries).toBe(3);
    });

    it("keeps one whose turn has not ended, however many come after it", async ({ world }) => {
      await record(world, 0);
      const claimed = await world.claimNext();
      for (let n = 1; n < 6; n++) {
        await record(world, n);
        await world.end(await world.claimNext());
      }
      expect(await kept(world, 6)).toEqual([0, 4, 5]);
      await world.end(claimed);
      for (let n = 6; n < 9; n++) {
        await record(world, n);
        await world.end(await world.claimNext());
      }
      expect(await kept(world, 9)).toEqual([6, 7, 8]);
    });

    it("refuses no turn when all that it keeps is unfinished", async ({ world }) => {
      for (let n = 0; n < 6; n++) await record(world, n);
      expect(await kept(world, 6)).toEqual([0, 1, 2, 3, 4, 5]);
    });

    it("keeps no more than its bytes", async ({ world }) => {
      for (let n = 0; n < 5; n++) {
        await record(world, n, { entries: 100, bytes: 25_000, refused: 100 }, "x".repeat(10_000));
        await world.end(await world.claimNext());
      }
      expect(await kept(world, 5)).toEqual([3, 4]);
    });
  });
};
