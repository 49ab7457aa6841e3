import { expect, it } from "vitest";
import { systemClock } from "#kit/clock.ts";
import { newId } from "#kit/ids.ts";
import { createMemoryStore } from "#store/memory/memory.ts";
import type { Store } from "#store/store.ts";
import { leastOf, watchLoop } from "#test/harness/loop.ts";
import { queueOrder } from "#test/stores/inbound.ts";
import { DAY, deliveryOf, endTurn, sweepOrder } from "#test/stores/world.ts";

const KINDS = 50_000;
const RECORDER = { entries: KINDS, bytes: 1e12, refused: 10 };

function breathe() {
  return new Promise((resolve) => setImmediate(resolve));
}

/** Ends a turn in a new session, with its recorded request and its idempotency key. */
function endOne(store: Store, now: number): Promise<void> {
  return endTurn(store, now, {
    session: `webhook:${newId("msg", now)}`,
    key: newId("req", now),
    delivery: { ...deliveryOf(newId("dlv", now)), requestId: newId("req", now) },
    recorder: RECORDER,
  });
}

async function queueEvent(store: Store, now: number): Promise<void> {
  await store.queueEvent(queueOrder(now, { recorder: RECORDER, streamKeep: 9 }));
}

/** Erases fifty thousand of each kind by age. Returns the longest block of work meanwhile. */
async function ageOut(): Promise<number> {
  await using store = createMemoryStore({ clock: systemClock });
  const now = systemClock.now();
  for (let n = 1; n <= KINDS; n++) {
    await endOne(store, now);
    await queueEvent(store, now);
    if (n % 100 === 0) await breathe();
    if (n % 1_000 !== 0) continue;
    await store.failQueuedEvents("main", "The test is over.", { now, streamKeep: 9, limit: 1_000 });
  }
  const full = { sessions: KINDS, eventsDead: KINDS, eventsQueued: 0, deliveries: KINDS };
  expect(store.stats()).toMatchObject(full);
  const { bytes } = store.stats();

  const longest = watchLoop();
  const at = now + 2 * DAY;
  const past = {
    sessionsBefore: at,
    webhookSessionsBefore: at,
    usageBefore: at,
    gatewayBefore: at,
    eventsBefore: at,
    keysBefore: at,
  };
  while (await store.sweep(sweepOrder(at, past))) await breathe();
  // The recorder erases its deliveries when others arrive.
  for (let n = 1; n <= KINDS; n++) {
    await store.recordDelivery({ ...deliveryOf(newId("dlv", at)), answer: "unmatched" }, { ...RECORDER, entries: 1 });
    if (n % 100 === 0) await breathe();
  }
  const worst = longest();
  expect(store.stats()).toMatchObject({ sessions: 0, eventsDead: 0, deliveries: 1 });
  expect(store.stats().bytes).toBeLessThan(bytes / 100);
  return worst;
}

it("erases 200 000 records by age (sessions, events, deliveries, idempotency keys) in slices of less than 20 ms", {
  timeout: 180_000,
}, async () => {
  expect(await leastOf(2, 20, ageOut)).toBeLessThan(20);
});
