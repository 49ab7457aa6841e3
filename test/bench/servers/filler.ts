import { newBareId, newId } from "#kit/ids.ts";
import type { Store } from "#store/store.ts";

/** A text of its own of 100 bytes, as one that came over the wire: flat, and shared with nothing. */
const textOf = (n: number): string => {
  const buffer = Buffer.alloc(100, "The quick brown fox jumps over the lazy dog. ");
  buffer.write(`${n} `, "latin1");
  return buffer.toString("latin1");
};

/** The name that the load gives to a session (see load.lua). */
export const loadSessionId = (n: number): string => `bench:${String(n).padStart(7, "0")}`;
/** The name that the gateway gives to a chat. */
export const chatSessionId = (): string => `chat:${newBareId(Date.now())}`;

const LIMITS = { turnsPerSession: 100, turns: 10_000, messagesPerSession: 1e9, storeBytes: Number.MAX_SAFE_INTEGER };
const RECORDER = { entries: 10_000, bytes: 64 * 2 ** 20, refused: 1_000 };
const YIELD_EVERY = 2_000;

/** Turns that are on their way to a store at once: one that waits for its disk then waits for many at a time. */
const AT_ONCE = 512;

/**
 * Puts whole turns in a store, each a message and its reply, in the two transactions that the core makes of them. The sessions take
 * turns, so that their journals grow side by side as in life.
 */
export const fillStore = async (
  store: Store,
  { turns, sessionIds }: { turns: number; sessionIds: readonly string[] },
): Promise<void> => {
  const atOnce = store.kind === "memory" ? 1 : Math.min(AT_ONCE, sessionIds.length);
  for (let n = 0; n < turns; n += atOnce) {
    const some = Array.from({ length: Math.min(atOnce, turns - n) }, (_, at) => {
      const sessionId = sessionIds[(n + at) % sessionIds.length] as string;
      return fillTurn(store, n + at, sessionId);
    });
    await Promise.all(some);
    if (n % YIELD_EVERY === 0) await new Promise(setImmediate);
  }
};

const fillTurn = async (store: Store, n: number, sessionId: string): Promise<void> => {
  const now = Date.now();
  const { claimed } = await store.startTurn({
    now,
    turnId: newId("turn", now),
    messageId: newId("msg", now),
    session: { sessionId, agent: "main", channel: "rest", userId: "bench" },
    surface: "rest",
    caller: "bench",
    text: textOf(2 * n),
    outside: false,
    context: undefined,
    model: undefined,
    countedModel: "echo",
    skillIds: [],
    waited: true,
    idempotency: undefined,
    delivery: undefined,
    events: undefined,
    announce: undefined,
    limits: LIMITS,
    recorder: RECORDER,
    claim: { now, node: "node_bench", leaseMs: 30_000, replyMessageId: newId("msg", now) },
  });
  if (!claimed) throw new Error("a turn was not claimed at once");
  const usage = { model: "echo", usage: { input: 25, output: 25 }, latencyMs: 0.1 };
  const reply = textOf(2 * n + 1);
  await store.endTurn(claimed.claim, { now, status: "completed", reply, error: undefined, usage });
};

/** Queues system events, each with the recorded request that brought it, as `/hooks/wake` does. */
export const fillEvents = async (store: Store, count: number, { beatNow = false } = {}): Promise<void> => {
  const body = Buffer.from(JSON.stringify({ text: textOf(0), metadata: { source: "bench" } }));
  for (let n = 0; n < count; n++) {
    const now = Date.now();
    await store.queueEvent({
      now,
      eventId: newId("evt", now),
      agent: "main",
      text: textOf(n),
      metadata: '{"source":"bench"}',
      caller: "shared",
      beatNow,
      idempotency: undefined,
      delivery: {
        deliveryId: newId("dlv", now),
        at: now,
        surface: "hooks",
        operation: "hooks.wake",
        method: "POST",
        path: "/hooks/wake",
        address: "127.0.0.1",
        requestId: newId("req", now),
        caller: "shared",
        headers: "content-type: application/json",
        body,
        bytes: body.length,
        answer: "accepted",
        status: undefined,
        mapping: undefined,
        replayOf: undefined,
        senderId: undefined,
        steps: [],
      },
      limits: { events: 10_000_000, storeBytes: Number.MAX_SAFE_INTEGER },
      recorder: RECORDER,
      streamKeep: 10_000,
    });
    if (n % YIELD_EVERY === 0) await new Promise(setImmediate);
  }
};
