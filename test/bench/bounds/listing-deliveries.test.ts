import { expect, it } from "vitest";
import { newId } from "#kit/ids.ts";
import { createMemoryStore } from "#store/memory/memory.ts";
import type { DeliveryQuery } from "#store/store.ts";
import { createManualClock } from "#test/harness/clock.ts";
import { leastOf, stretchOf } from "#test/harness/loop.ts";
import { deliveryOf, RECORDER } from "#test/stores/world.ts";

const MANY = 100_000;

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

it("looks through 100 000 deliveries by whatever is asked for without keeping others waiting", {
  timeout: 60_000,
}, async () => {
  const clock = createManualClock();
  const store = createMemoryStore({ clock });
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
    // The least of a few times: the first compiles, and any may collect garbage.
    expect(await leastOf(5, 10, () => stretchOf(list)), name).toBeLessThan(10);
  }
});
