import { describe, expect, it } from "vitest";
import { A_BEAT, type BeatingCore, startBeating } from "./beating-core.ts";

/** How many events each turn was given, when all waits of the beat are over; and for how long it waited between them. */
const beatFully = async (core: BeatingCore) => {
  const began = core.clock.monotonic() + A_BEAT;
  await core.beat();
  while (core.store.agentCounts("main").waitingEvents > 0) {
    await core.endAll();
    await core.clock.advance(1);
  }
  await core.endAll();
  return { sizes: core.handed().map((texts) => texts.length), waited: core.clock.monotonic() - began };
};

describe("the first large beat of a process", () => {
  it("begins with few, gives each turn up to twice as many, and rests between them", async () => {
    const warmth = { handed: 0 };
    await using core = await startBeating({ warmth });
    await core.queueMany(1_001);
    const { sizes, waited } = await beatFully(core);
    expect(sizes.slice(0, 6)).toEqual([10, 10, 20, 40, 80, 100]);
    expect(sizes.reduce((sum, size) => sum + size, 0)).toBe(1_001);
    expect(waited).toBeGreaterThanOrEqual((sizes.length - 1) * 16);
    expect(warmth.handed).toBe(1_001);
  });

  it("is as every other once so many were handed over", async () => {
    await using core = await startBeating({ warmth: { handed: 3_900 } });
    await core.queueMany(1_001);
    const { sizes } = await beatFully(core);
    // The pieces stay small for as long as this beat grows; the rests end with the four thousandth.
    expect(sizes.slice(0, 6)).toEqual([10, 10, 20, 40, 80, 100]);
    await using warm = await startBeating({ warmth: { handed: 4_000 } });
    await warm.queueMany(1_001);
    const { sizes: whole, waited } = await beatFully(warm);
    expect(whole).toEqual([...Array.from({ length: 10 }, () => 100), 1]);
    expect(waited).toBeLessThan(16);
  });

  it("is not gentle where few wait, and counts them all the same", async () => {
    const warmth = { handed: 0 };
    await using core = await startBeating({ warmth });
    await core.queueMany(150);
    expect((await beatFully(core)).sizes).toEqual([100, 50]);
    expect(warmth.handed).toBe(150);
  });
});
