import { expect, it } from "vitest";
import { systemClock } from "#kit/clock.ts";
import { newId } from "#kit/ids.ts";
import type { Store, TurnOrder } from "#store/store.ts";
import { stretchOf } from "#test/harness/loop.ts";
import { newPath, openSqlite } from "#test/stores/sqlite-engine.ts";
import { deliveryOf, LOST } from "#test/stores/world.ts";

const MESSAGES = process.env.RUN_LONG ? 1_000_000 : 4_000;
const AT_ONCE = 64;
const LIMITS = { turnsPerSession: 1e9, turns: 1e9, messagesPerSession: 1e9, storeBytes: 1e15 };
const RECORDER = { entries: 10_000, bytes: 64e6, refused: 10 };
const HOUR = 3_600_000;
/** A tenth of all turns is in one session. */
const LONG = "chat:long";

const orderOf = (n: number, now: number): TurnOrder => ({
  now,
  turnId: newId("turn", now),
  messageId: newId("msg", now),
  session: { sessionId: n % 10 === 0 ? LONG : `chat:${n % 50_000}`, agent: "main", channel: "rest", userId: "ada" },
  surface: "rest",
  caller: "ci",
  text: "a message of about a hundred bytes, as people write them to an agent that answers them with another",
  outside: false,
  context: undefined,
  model: undefined,
  countedModel: "echo",
  skillIds: [],
  waited: false,
  idempotency: { key: newId("req", now), hash: "hash", expiresAt: now + HOUR },
  delivery: deliveryOf(newId("dlv", now)),
  limits: LIMITS,
  recorder: RECORDER,
  events: undefined,
  announce: undefined,
  claim: { now, node: "node_a", leaseMs: HOUR, replyMessageId: newId("msg", now) },
});

/** Two messages, when nothing else of the session is before them. */
const talk = async (store: Store, n: number): Promise<void> => {
  const now = systemClock.now();
  const order = orderOf(n, now);
  const { claimed } = await store.startTurn(order);
  if (claimed) {
    const usage = { model: "echo", usage: { input: 25, output: 25 }, latencyMs: 1 };
    await store.endTurn(claimed.claim, { now, status: "completed", reply: order.text, error: undefined, usage });
  } else {
    await store.cancelTurn(order.turnId, now);
  }
};

const fill = async (store: Store, turns: number): Promise<void> => {
  let next = 0;
  const work = async () => {
    while (next < turns) await talk(store, next++);
  };
  await Promise.all(Array.from({ length: AT_ONCE }, work));
};

const use = async (store: Store): Promise<void> => {
  const now = systemClock.now();
  for (let n = 0; n < 20; n++) {
    await Promise.all([
      fill(store, AT_ONCE),
      store.listSessions({ limit: 100 }),
      store.readMessages(LONG, { limit: 100, before: 1 + n * 100 }),
      store.readEntries(LONG, { after: n * 100, limit: 500 }),
      store.listDeliveries({ limit: 100, id: "dlv_unknown" }),
      store.readUsage({ from: 0, to: Infinity }),
    ]);
  }
  const past = { webhookSessionsBefore: 0, usageBefore: 0, gatewayBefore: 0, keysBefore: 0, eventsBefore: 0 };
  await store.deleteSession(LONG, now);
  for (let slices = 0; slices < 200; slices++) {
    await store.sweep({ now: now + 2 * HOUR, maxAttempts: 3, lost: LOST, sessionsBefore: now, ...past });
  }
};

it(`never keeps the event loop for 20 ms with ${MESSAGES} messages`, { timeout: 1_800_000 }, async () => {
  await using store = await openSqlite(systemClock, newPath());
  const filling = await stretchOf(() => fill(store, MESSAGES / 2));
  const using = await stretchOf(() => use(store));
  console.log(`longest: ${filling.toFixed(1)} ms while it fills, ${using.toFixed(1)} ms while it is used`);
  expect(Math.max(filling, using)).toBeLessThan(20);
});
