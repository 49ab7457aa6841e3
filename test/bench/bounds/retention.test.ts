import { expect, it } from "vitest";
import { systemClock } from "#kit/clock.ts";
import { newId } from "#kit/ids.ts";
import { createMemoryStore } from "#store/memory/memory.ts";
import type { Store } from "#store/store.ts";
import { leastOf, watchLoop } from "#test/harness/loop.ts";
import { deliveryOf, LOST } from "#test/stores/world.ts";

const KINDS = 50_000;
const HOUR = 3_600_000;
const LIMITS = { turnsPerSession: 9, turns: 1e9, messagesPerSession: 1e9, storeBytes: 1e15, events: 1e9 };
const RECORDER = { entries: KINDS, bytes: 1e12, refused: 10 };

const breathe = () => new Promise((resolve) => setImmediate(resolve));

/** Ends a turn in a session of its own, with its recorded request and its idempotency key. */
const endTurn = async (store: Store, now: number): Promise<void> => {
  const { claimed } = await store.startTurn({
    now,
    turnId: newId("turn", now),
    messageId: newId("msg", now),
    session: { sessionId: `webhook:${newId("msg", now)}`, agent: "main", channel: "hooks", userId: "shared" },
    surface: "hooks",
    caller: "shared",
    text: "it happened",
    outside: true,
    context: undefined,
    model: undefined,
    countedModel: "echo",
    skillIds: [],
    waited: false,
    idempotency: { key: newId("req", now), hash: "hash", expiresAt: now + HOUR },
    delivery: { ...deliveryOf(newId("dlv", now)), requestId: newId("req", now) },
    limits: LIMITS,
    recorder: RECORDER,
    events: undefined,
    announce: undefined,
    claim: { now, node: "node_a", leaseMs: HOUR, replyMessageId: newId("msg", now) },
  });
  if (!claimed) throw new Error("the turn was not claimed at once");
  await store.endTurn(claimed.claim, { now, status: "completed", reply: "hi", error: undefined, usage: undefined });
};

const queueEvent = async (store: Store, now: number): Promise<void> => {
  const of = { agent: "main", text: "it happened", metadata: undefined, caller: "shared", beatNow: false };
  const none = { idempotency: undefined, delivery: undefined };
  await store.queueEvent({
    now,
    eventId: newId("evt", now),
    ...of,
    ...none,
    limits: LIMITS,
    recorder: RECORDER,
    streamKeep: 9,
  });
};

/** Ages out fifty thousand of each kind. Answers the longest stretch of work meanwhile. */
const ageOut = async (): Promise<number> => {
  await using store = createMemoryStore({ clock: systemClock });
  const now = systemClock.now();
  for (let n = 1; n <= KINDS; n++) {
    await endTurn(store, now);
    await queueEvent(store, now);
    if (n % 100 === 0) await breathe();
    if (n % 1_000 !== 0) continue;
    await store.failQueuedEvents("main", "The test is over.", { now, streamKeep: 9, limit: 1_000 });
  }
  const full = { sessions: KINDS, eventsDead: KINDS, eventsQueued: 0, deliveries: KINDS };
  expect(store.stats()).toMatchObject(full);
  const { bytes } = store.stats();

  const longest = watchLoop();
  const at = now + 2 * HOUR;
  const past = {
    sessionsBefore: at,
    webhookSessionsBefore: at,
    usageBefore: at,
    gatewayBefore: at,
    eventsBefore: at,
    keysBefore: at,
  };
  while (await store.sweep({ now: at, maxAttempts: 3, lost: LOST, ...past })) await breathe();
  // The recorder lets its deliveries go as others come.
  for (let n = 1; n <= KINDS; n++) {
    await store.recordDelivery({ ...deliveryOf(newId("dlv", at)), answer: "unmatched" }, { ...RECORDER, entries: 1 });
    if (n % 100 === 0) await breathe();
  }
  const worst = longest();
  expect(store.stats()).toMatchObject({ sessions: 0, eventsDead: 0, deliveries: 1 });
  expect(store.stats().bytes).toBeLessThan(bytes / 100);
  return worst;
};

it("ages out 200 000 records (sessions, events, deliveries, idempotency keys) and never works for 20 ms at a stretch", {
  timeout: 180_000,
}, async () => {
  expect(await leastOf(2, 20, ageOut)).toBeLessThan(20);
});
