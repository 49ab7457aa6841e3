import { expect, it } from "vitest";
import { createMemoryStore } from "#store/memory/memory.ts";
import type { ManualClock } from "#test/harness/clock.ts";
import { leastOf, stretchOf } from "#test/harness/loop.ts";
import { compact, SESSION } from "#test/stores/journals.ts";
import { type Engine, openWorld, type World } from "#test/stores/world.ts";

const memory: Engine = { name: "memory", open: async (clock: ManualClock) => createMemoryStore({ clock }) };
const HOUR = 3_600_000;

it("erases the head of 600 000 entries without keeping others waiting", { timeout: 60_000 }, async () => {
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

it("looks at what it cannot erase once, and not with every sweep", async () => {
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

const sweepOnce = (world: World, sessionsBefore: number) =>
  world.store.sweep({
    now: world.clock.now(),
    maxAttempts: 3,
    lost: { name: "turn-failed", detail: "lost" },
    sessionsBefore,
    webhookSessionsBefore: 0,
    usageBefore: 0,
    gatewayBefore: 0,
    eventsBefore: 0,
    keysBefore: 0,
  });

/** Ends so many turns of one session. What was told of them is more than the store keeps: it is not kept here. */
const fill = async ({ store, clock, order, told }: World, count: number): Promise<void> => {
  const now = clock.now();
  const end = { now, status: "completed", reply: "hi", error: undefined, usage: undefined } as const;
  for (let n = 0; n < count; n++) {
    const claim = { now, node: "node_a", leaseMs: HOUR, replyMessageId: `msg_${n}` };
    const { claimed } = await store.startTurn(order({ text: `hello ${n}`, claim }));
    if (!claimed) throw new Error("the turn was not claimed at once");
    await store.endTurn(claimed.claim, end);
    if (n % 1_000 === 0) told.length = 0;
  }
  told.length = 0;
};
