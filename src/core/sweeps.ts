import type { Events } from "#observe/events.ts";
import type { Store } from "#store/store.ts";
import { MAX_ATTEMPTS } from "./attempt.ts";
import type { Clock } from "./clock.ts";
import { GATEWAY_KEPT_MS } from "./gateway-stream.ts";
import { USAGE_KEPT_MS } from "./usage.ts";

const EVERY_MS = 1_000;
const MORE_MS = 10;
/** So many gateways on one store sweep by turns, each so much less often. More do not, as those of the others that died are waited for. */
const MOST_BY_TURNS = 3;

type Kept = { retentionMs: number; webhookRetentionMs: number; eventRetentionMs: number };

/** Has the store put right what time has done, a slice at a time; the returned function ends it. */
export const startSweeps = (parts: { store: Store; clock: Clock; events: Events; kept: () => Kept }): (() => void) => {
  const { store, clock, events, kept } = parts;
  let isStopped = false;
  let stopTimer = () => {};

  const sweepAfter = (ms: number): void => {
    if (!isStopped) stopTimer = clock.after(ms, run);
  };
  const sweep = async (): Promise<void> => {
    const now = clock.now();
    const { retentionMs, webhookRetentionMs, eventRetentionMs } = kept();
    const more = await store.sweep({
      now,
      maxAttempts: MAX_ATTEMPTS,
      lost: { name: "turn-failed", detail: "its runner was lost, as often as a turn is tried" },
      sessionsBefore: now - retentionMs,
      webhookSessionsBefore: now - webhookRetentionMs,
      usageBefore: now - USAGE_KEPT_MS,
      gatewayBefore: now - GATEWAY_KEPT_MS,
      eventsBefore: now - eventRetentionMs,
    });
    sweepAfter(more ? MORE_MS : EVERY_MS * Math.min(store.shared?.gateways() ?? 1, MOST_BY_TURNS));
  };
  const run = (): void => {
    sweep().catch((error: unknown) => {
      if (!isStopped) events.storeFailed({ operation: "sweep", error });
      sweepAfter(EVERY_MS);
    });
  };
  // What a gateway left that died goes on at once: by one, too, that dies again and again within its first second.
  sweepAfter(MORE_MS);

  return () => {
    isStopped = true;
    stopTimer();
  };
};
