import { expect, it } from "vitest";
import { systemClock } from "#kit/clock.ts";
import { newId } from "#kit/ids.ts";
import type { Store, TurnOrder } from "#store/store.ts";
import { stretchOf } from "#test/harness/loop.ts";
import { newPath, openSqlite } from "#test/stores/sqlite-engine.ts";
import { DAY, deliveryOf, sweepOrder, turnOrder } from "#test/stores/world.ts";

const MESSAGES = process.env.RUN_LONG ? 1_000_000 : 4_000;
const AT_ONCE = 64;
const RECORDER = { entries: 10_000, bytes: 64e6, refused: 10 };
/** A tenth of all turns is in one session. */
const LONG = "chat:long";

function orderOf(n: number, now: number): TurnOrder {
  return turnOrder(now, {
    session: n % 10 === 0 ? LONG : `chat:${n % 50_000}`,
    text: "a message of about a hundred bytes, as people write them to an agent that answers them with another",
    key: newId("req", now),
    delivery: deliveryOf(newId("dlv", now)),
    recorder: RECORDER,
    claim: { now, node: "node_a", leaseMs: DAY, replyMessageId: newId("msg", now) },
  });
}

/** Two messages, if the session has no earlier one. */
async function talk(store: Store, n: number): Promise<void> {
  const now = systemClock.now();
  const order = orderOf(n, now);
  const { claimed } = await store.startTurn(order);
  if (claimed) {
    const usage = { model: "echo", usage: { input: 25, output: 25 }, latencyMs: 1 };
    await store.endTurn(claimed.claim, { now, status: "completed", reply: order.text, error: undefined, usage });
  } else {
    await store.cancelTurn(order.turnId, now);
  }
}

async function fill(store: Store, turns: number): Promise<void> {
  let next = 0;
  const work = async () => {
    while (next < turns) await talk(store, next++);
  };
  await Promise.all(Array.from({ length: AT_ONCE }, work));
}

async function use(store: Store): Promise<void> {
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
  await store.deleteSession(LONG, now);
  for (let slices = 0; slices < 200; slices++) {
    await store.sweep(sweepOrder(now + 2 * DAY, { sessionsBefore: now }));
  }
}

it(`never blocks the event loop for 20 ms with ${MESSAGES} messages`, { timeout: 1_800_000 }, async () => {
  await using store = await openSqlite(systemClock, newPath());
  const filling = await stretchOf(() => fill(store, MESSAGES / 2));
  const using = await stretchOf(() => use(store));
  console.log(`longest: ${filling.toFixed(1)} ms while it fills, ${using.toFixed(1)} ms while it is used`);
  expect(Math.max(filling, using)).toBeLessThan(20);
});
