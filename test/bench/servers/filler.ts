import { newBareId, newId } from "#kit/ids.ts";
import type { Store } from "#store/store.ts";
import { queueOrder } from "#test/stores/inbound.ts";
import { deliveryOf, endTurn } from "#test/stores/world.ts";

/** A separate text of 100 bytes, like a received one: flat, and not shared. */
function textOf(n: number): string {
  const buffer = Buffer.alloc(100, "The quick brown fox jumps over the lazy dog. ");
  buffer.write(`${n} `, "latin1");
  return buffer.toString("latin1");
}

/** The session name of the load (see load.lua). */
export function loadSessionId(n: number): string {
  return `bench:${String(n).padStart(7, "0")}`;
}
/** The session name of the gateway for a chat. */
export function chatSessionId(): string {
  return `chat:${newBareId(Date.now())}`;
}

const RECORDER = { entries: 10_000, bytes: 64 * 2 ** 20, refused: 1_000 };
const YIELD_EVERY = 2_000;

/** The number of concurrent turns: a store that waits for its disk then waits for many at once. */
const AT_ONCE = 512;

/**
 * Fills a store with complete turns, each a message and its reply, in the two transactions of the core. The sessions alternate, so that their
 * journals grow in parallel as in production.
 */
export async function fillStore(
  store: Store,
  { turns, sessionIds }: { turns: number; sessionIds: readonly string[] },
): Promise<void> {
  const atOnce = store.kind === "memory" ? 1 : Math.min(AT_ONCE, sessionIds.length);
  for (let n = 0; n < turns; n += atOnce) {
    const some = Array.from({ length: Math.min(atOnce, turns - n) }, (_, at) => {
      const sessionId = sessionIds[(n + at) % sessionIds.length] as string;
      return fillTurn(store, n + at, sessionId);
    });
    await Promise.all(some);
    if (n % YIELD_EVERY === 0) await new Promise(setImmediate);
  }
}

function fillTurn(store: Store, n: number, session: string): Promise<void> {
  const usage = { model: "echo", usage: { input: 25, output: 25 }, latencyMs: 0.1 };
  const options = { session, text: textOf(2 * n), waited: true, recorder: RECORDER };
  return endTurn(store, Date.now(), options, { reply: textOf(2 * n + 1), usage });
}

/** Queues system events, each with a recorded request, like `/hooks/wake`. */
export async function fillEvents(store: Store, count: number, { beatNow = false } = {}): Promise<void> {
  const body = JSON.stringify({ text: textOf(0), metadata: { source: "bench" } });
  for (let n = 0; n < count; n++) {
    const now = Date.now();
    const ids = { deliveryId: newId("dlv", now), requestId: newId("req", now) };
    const delivery = {
      ...deliveryOf(ids.deliveryId, body),
      ...ids,
      at: now,
      surface: "hooks",
      operation: "hooks.wake",
    } as const;
    await store.queueEvent(
      queueOrder(now, {
        text: textOf(n),
        metadata: '{"source":"bench"}',
        beatNow,
        delivery: { ...delivery, path: "/hooks/wake", caller: "shared" },
        recorder: RECORDER,
        limits: { events: 10_000_000 },
      }),
    );
    if (n % YIELD_EVERY === 0) await new Promise(setImmediate);
  }
}
