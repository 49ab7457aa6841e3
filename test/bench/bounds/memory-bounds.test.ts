import { expect, it } from "vitest";
import { newId } from "#kit/ids.ts";
import { createMemoryStore } from "#store/memory/memory.ts";
import type { DeliveryQuery, Store } from "#store/store.ts";
import { createManualClock } from "#test/harness/clock.ts";
import { leastOf, stretchOf, watchLoop } from "#test/harness/loop.ts";
import { queueOrder } from "#test/stores/inbound.ts";
import { deliveryOf, endTurn, RECORDER, sweepOrder } from "#test/stores/world.ts";

const MANY = 100_000;
function openStore() {
  const clock = createManualClock();
  return { clock, store: createMemoryStore({ clock }) };
}

async function queue(store: Store, now: number, options: { agent?: string; text?: string } = {}): Promise<string> {
  const order = queueOrder(now, { limits: { events: 1e9, storeBytes: 1e15 }, streamKeep: 100, ...options });
  await store.queueEvent(order);
  return order.eventId;
}

/** The longest block of work while `act` runs: the lowest of a few runs, because the first compiles and any may collect garbage. */
function worstOf(act: () => Promise<unknown>, under: number) {
  return leastOf(5, under, () => stretchOf(act));
}

it("reads a hundred of 100 000 waiting events at once, also after nearly all have ended", async () => {
  const { clock, store } = openStore();
  const now = clock.now();
  for (let n = 0; n < MANY; n++) await queue(store, now);
  const read = (after = 0) =>
    store.readQueuedEvents({ agent: "main", after, through: Infinity, limit: 100, bytes: 65_536 });
  expect(await worstOf(() => read(), 5)).toBeLessThan(5);
  const middle = (await read(50_000))[0]?.ordinal ?? 0;
  expect(middle).toBe(50_001);
  expect(await worstOf(() => read(50_000), 5)).toBeLessThan(5);
  for (let left = MANY - 100; left > 0; left -= 1_000) {
    await store.failQueuedEvents("main", "gone", { now, streamKeep: 100, limit: Math.min(left, 1_000) });
  }
  expect(await read()).toHaveLength(100);
  expect(await worstOf(() => read(), 5)).toBeLessThan(5);
});

it("scans 100 000 events without blocking others", async () => {
  const { clock, store } = openStore();
  const first = await queue(store, clock.now(), { agent: "seldom" });
  for (let n = 0; n < MANY; n++) await queue(store, clock.now());
  const list = () => store.listEvents({ agent: "seldom", limit: 10 });
  expect((await list()).items.map(({ eventId }) => eventId)).toEqual([first]);
  expect(await worstOf(list, 10)).toBeLessThan(10);
  expect(await worstOf(() => store.listEvents({ limit: 30_000 }), 20)).toBeLessThan(20);
});

it("reads a page of large events without blocking others", async () => {
  const { clock, store } = openStore();
  for (let n = 0; n < 500; n++) await queue(store, clock.now(), { text: "ü".repeat(100_000) });
  // A slice is read in less than a millisecond, but a reader with 50 MB of texts waits for garbage collections.
  expect(await worstOf(() => store.listEvents({ limit: 500 }), 20)).toBeLessThan(20);
});

const QUERIES: Record<string, Omit<DeliveryQuery, "limit">> = {
  id: { id: "dlv_first" },
  "an id that nothing has": { id: newId("dlv", 1) },
  mapping: { mapping: "seldom" },
  outcome: { outcome: "challenge" },
  "an outcome that the work tells": { outcome: "gone" },
  session: { sessionId: "chat:seldom" },
  time: { to: 1 },
  surface: { surface: "heartbeat" },
};

it("scans 100 000 deliveries with any filter without blocking others", {
  timeout: 60_000,
}, async () => {
  const { clock, store } = openStore();
  const recorder = { ...RECORDER, entries: MANY + 10 };
  const of = {
    ...deliveryOf("dlv_first"),
    at: 0,
    mapping: "seldom",
    answer: "challenge",
    surface: "heartbeat",
  } as const;
  await store.recordDelivery(of, recorder, { turnId: newId("turn", 1), sessionId: "chat:seldom" });
  for (let n = 0; n < MANY; n++) {
    const delivery = { ...deliveryOf(newId("dlv", clock.now())), requestId: newId("req", clock.now()) };
    const work = n % 2 === 0 ? { turnId: newId("turn", 1), sessionId: "chat:a" } : { eventId: newId("evt", 1) };
    await store.recordDelivery({ ...delivery, answer: "repeated" }, recorder, work);
  }
  for (const [name, query] of Object.entries(QUERIES)) {
    const list = () => store.listDeliveries({ ...query, limit: 10 });
    const found = (await list()).items.map(({ deliveryId }) => deliveryId);
    expect(found, name).toEqual(/nothing|tells/.test(name) || name.includes("work") ? [] : ["dlv_first"]);
    expect(await worstOf(list, 10), name).toBeLessThan(10);
  }
});

it("deletes a session of 20 000 entries without blocking others, and erases it in slices", async () => {
  const { clock, store } = openStore();
  const now = clock.now();
  const runTurn = (session: string, n: number) =>
    endTurn(store, now, {
      session,
      text: `hello ${n}`,
      delivery: deliveryOf(newId("dlv", now)),
      recorder: { ...RECORDER, entries: 1e6 },
    });
  const { bytes } = store.stats();
  const sessions = ["chat:a", "chat:b", "chat:c"];
  for (const session of sessions) {
    for (let n = 0; n < 4_000; n++) {
      await runTurn(session, n);
    }
  }
  const sweep = (sessionsBefore = 0) => store.sweep(sweepOrder(now, { sessionsBefore }));
  const erase = async (session: string): Promise<number> => {
    const longest = watchLoop();
    expect(await store.deleteSession(session, now)).toEqual({ turnsCancelled: 0 });
    expect(await store.readEntries(session, { after: 0, limit: 10 })).toEqual([]);
    let slices = 0;
    do {
      await new Promise((resolve) => setImmediate(resolve));
      slices++;
    } while (await sweep());
    expect(slices).toBeGreaterThan(10);
    return longest();
  };
  const times: number[] = [];
  for (const session of sessions) times.push(await erase(session));
  expect(Math.min(...times)).toBeLessThan(10);
  const left = () => store.stats().bytes - store.stats().deliveryBytes - bytes;
  expect(left()).toBeLessThan(1_000);
  for (let n = 0; n < 200; n++) {
    await runTurn("chat:aged", n);
  }
  while (await sweep(now));
  expect(left()).toBeLessThan(1_000);
});
