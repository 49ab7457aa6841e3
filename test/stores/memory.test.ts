import { expect, it } from "vitest";
import { createMemoryStore } from "#store/memory/memory.ts";
import { storeSuite } from "./suite.ts";
import { DAY, deliveryOf, type Engine, openWorld, used } from "./world.ts";

const memory: Engine = { name: "memory", open: async (clock) => createMemoryStore({ clock }) };

storeSuite(memory);

it("reports that it is not durable", async () => {
  await using world = await openWorld(memory);
  expect(world.store).toMatchObject({ kind: "memory", durable: false });
});

it("is empty when it is opened again", async () => {
  await using first = await openWorld(memory);
  const { turnId } = await first.start({ key: "k" });
  await using second = await openWorld(memory);
  expect(await second.store.getTurn(turnId)).toBeUndefined();
  expect(second.store.stats()).toMatchObject({ sessions: 0, turnsQueued: 0, bytes: 0 });
});

it("does not count the bytes of deleted records", async () => {
  await using world = await openWorld(memory);
  await world.start({ session: "chat:kept", text: "x".repeat(1_000) });
  await world.end(await world.claimNext(), { reply: "y".repeat(1_000), usage: used(1, 1) });
  const { bytes } = world.store.stats();
  for (let n = 0; n < 300; n++) {
    const session = `chat:${n}`;
    for (let turn = 0; turn < 2; turn++) await world.start({ session, text: `long ü${"x".repeat(2_000)}` });
    const claimed = await world.claimNext();
    if (n % 3 === 0) await world.end(claimed, { reply: "y".repeat(3_000) });
    if (n % 3 === 1) await world.release(claimed, 1_000);
  }
  expect(world.store.stats().bytes).toBeGreaterThan(bytes + 1_000_000);
  for (let n = 0; n < 300; n++) await world.store.deleteSession(`chat:${n}`, world.clock.now());
  expect(world.store.stats().bytes).toBe(bytes);
});

it("counts idempotency keys until they expire", async () => {
  await using world = await openWorld(memory);
  const { bytes } = world.store.stats();
  await world.start({ key: "k".repeat(10_000) });
  await world.store.deleteSession("chat:a", world.clock.now());
  expect(world.store.stats().bytes).toBeGreaterThan(bytes + 10_000);
  await world.clock.advance(DAY);
  await world.sweep();
  expect(world.store.stats().bytes).toBeLessThan(bytes + 1_000);
});

it("does not count the recorder against the store's limit, because the recorder makes room automatically", async () => {
  await using world = await openWorld(memory);
  await world.start({ delivery: deliveryOf("dlv_1", "x".repeat(100_000)) });
  const order = world.order({ session: "chat:b", limits: { storeBytes: 50_000 } });
  expect((await world.store.startTurn(order)).turn.status).toBe("queued");
});

it("notifies no watchers after it is closed", async () => {
  const world = await openWorld(memory);
  await world.store[Symbol.asyncDispose]();
  await world.start();
  expect(world.told).toEqual([]);
});
