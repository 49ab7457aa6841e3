import { expect, it } from "vitest";
import { createMemoryStore } from "#store/memory/memory.ts";
import type { ManualClock } from "#test/harness/clock.ts";
import { startCompaction } from "./compactions.ts";
import { compact, endCompactionWith, SESSION, talk } from "./journals.ts";
import { type Engine, openWorld, sweepOrder, type World } from "./world.ts";

const memory: Engine = { name: "memory", open: async (clock: ManualClock) => createMemoryStore({ clock }) };
const HOUR = 3_600_000;

function bytesOf({ store }: World): number {
  return store.stats().bytes;
}

it("returns the memory of erased entries, however long a session continues", async () => {
  await using world = await openWorld(memory);
  const rounds: number[] = [];
  for (let round = 0; round < 30; round++) {
    await talk(
      world,
      Array.from({ length: 50 }, (_, n) => `${round} ${n} ${"x".repeat(n % 10 === 0 ? 20_000 : 100)}`),
    );
    await compact(world);
    await world.clock.advance(HOUR);
    await world.sweep({ sessionsBefore: world.clock.now() - 2 * HOUR });
    rounds.push(bytesOf(world));
  }
  expect(await world.store.getSession(SESSION)).toMatchObject({ messageCount: 3_000, lastSeq: 30 * 301 });
  // Two rounds are stored: later rounds need no more than the third, except for the counters of usage.
  const [third = 0] = rounds.slice(2);
  expect(Math.max(...rounds.slice(3))).toBeLessThan(third * 1.05);
});

it("continues in each slice where the last one ended, for a growing session with overlapping turns", async () => {
  await using world = await openWorld(memory);
  const { store, clock } = world;
  const turnIds: string[] = [];
  const addTurns = async (count: number): Promise<void> => {
    for (let n = 0; n < count; n++) {
      turnIds.push((await world.start()).turnId);
      if (turnIds.length > 5) await world.end(await world.claimNext());
    }
  };
  await addTurns(3_000);
  await startCompaction(world);
  await addTurns(5);
  await endCompactionWith(world, await world.claimNext());
  const sessionsBefore = clock.now();
  await clock.advance(1);
  let slices = 1;
  for (; await store.sweep(sweepOrder(clock.now(), { sessionsBefore })); slices++) await addTurns(10);
  expect(slices).toBeGreaterThan(3);
  const kept = await Promise.all(turnIds.map((turnId) => store.getTurn(turnId)));
  expect(kept.findIndex(Boolean)).toBe(3_000);
  expect(kept.slice(3_000).every(Boolean)).toBe(true);
  const { firstSeq = 0, lastSeq = 0 } = (await store.getSession(SESSION)) ?? {};
  expect(kept[3_000]?.seq).toBe(firstSeq + 1);
  const entries = await store.readEntries(SESSION, { after: 0, limit: 10_000 });
  expect(entries.map(({ seq }) => seq)).toEqual(Array.from({ length: lastSeq - firstSeq + 1 }, (_, n) => firstSeq + n));
});
