import { expect, it } from "vitest";
import { createMemoryStore } from "#store/memory/memory.ts";
import type { ManualClock } from "#test/harness/clock.ts";
import { leastOf, stretchOf } from "#test/harness/loop.ts";
import { compact, SESSION } from "#test/stores/journals.ts";
import { type Engine, endTurn, openWorld, sweepOrder, type World } from "#test/stores/world.ts";

const memory: Engine = { name: "memory", open: async (clock: ManualClock) => createMemoryStore({ clock }) };

it("erases the head of 600 000 entries without blocking others", { timeout: 60_000 }, async () => {
  const erase = async (): Promise<number> => {
    await using world = await openWorld(memory);
    await fill(world, 100_000);
    await compact(world);
    const sessionsBefore = world.clock.now();
    await world.clock.advance(1);
    await world.start();
    const { bytes } = world.store.stats();
    const sweep = async () => {
      while (await sweepOnce(world, sessionsBefore)) await new Promise((resolve) => setImmediate(resolve));
    };
    const worst = await stretchOf(sweep);
    expect(await world.store.getSession(SESSION)).toMatchObject({ firstSeq: 600_002 });
    expect(world.store.stats().bytes).toBeLessThan(bytes / 100);
    return worst;
  };
  expect(await leastOf(3, 10, erase)).toBeLessThan(10);
});

it("checks entries that it cannot erase once, and not in every sweep", async () => {
  await using world = await openWorld(memory);
  await fill(world, 20_000);
  await compact(world, ["hello 0"]);
  await world.clock.advance(1);
  await world.start();
  const sweep = () => sweepOnce(world, world.clock.now() - 1);
  while (await sweep());
  const long = await leastOf(5, 1, () => stretchOf(sweep));
  expect(long).toBeLessThan(1);
});

function sweepOnce({ store, clock }: World, sessionsBefore: number) {
  return store.sweep(sweepOrder(clock.now(), { sessionsBefore }));
}

/** Ends a number of turns in one session. The notifications are more than the store keeps, so they are not recorded here. */
async function fill({ store, clock, told, newId }: World, count: number): Promise<void> {
  for (let n = 0; n < count; n++) {
    await endTurn(store, clock.now(), { turnId: newId("turn"), messageId: newId("msg"), text: `hello ${n}` });
    if (n % 1_000 === 0) told.length = 0;
  }
  told.length = 0;
}
