import { GATEWAY_KEPT_MS } from "#core/gateway-stream.ts";
import type { CoreParts } from "#core/parts.ts";
import { MAX_ATTEMPTS } from "#core/turns/attempt.ts";
import { USAGE_KEPT_MS } from "#core/usage.ts";
import type { Clock } from "#kit/clock.ts";
import type { Events } from "#observe/events.ts";

const EVERY_MS = 1_000;
const MORE_MS = 10;
/** The most gateways on one store that sweep by turns, each less often. With more, the turns of dead ones would take too long. */
const MOST_BY_TURNS = 3;

/** The wall clock may move this far against the monotonic clock. After a larger jump it must run evenly for this long. */
const JUMP_MS = 3_600_000;

type SweepParts = Pick<CoreParts, "store" | "clock" | "events" | "settings">;

/** Has the store put right what time has done, a slice at a time; the returned function ends it. */
export function startSweeps({ store, clock, events, settings }: SweepParts): () => void {
  let isStopped = false;
  let stopTimer = () => {};
  const isSteady = watchJumps(clock, events);

  const sweepAfter = (ms: number): void => {
    if (!isStopped) stopTimer = clock.after(ms, run);
  };
  const sweep = async (): Promise<void> => {
    const now = clock.now();
    const steady = isSteady();
    const { retentionMs, webhookRetentionMs, eventRetentionMs } = settings();
    // After a jump of the clock nothing counts as old: a sweep cannot be undone.
    const before = (ms: number): number => (steady ? now - ms : 0);
    const more = await store.sweep({
      now,
      maxAttempts: MAX_ATTEMPTS,
      lost: { name: "turn-failed", detail: "its runner was lost, as often as a turn is tried" },
      sessionsBefore: before(retentionMs),
      webhookSessionsBefore: before(webhookRetentionMs),
      usageBefore: before(USAGE_KEPT_MS),
      gatewayBefore: before(GATEWAY_KEPT_MS),
      eventsBefore: before(eventRetentionMs),
      keysBefore: before(0),
    });
    sweepAfter(more ? MORE_MS : EVERY_MS * Math.min(store.shared?.gateways() ?? 1, MOST_BY_TURNS));
  };
  const run = (): void => {
    sweep().catch((error: unknown) => {
      if (!isStopped) events.storeFailed({ operation: "sweep", error });
      sweepAfter(EVERY_MS);
    });
  };
  // A sweep that a dead gateway left goes on at once, even if each gateway dies again within its first second.
  sweepAfter(MORE_MS);

  return () => {
    isStopped = true;
    stopTimer();
  };
}

/**
 * Tells whether ages may be taken from the wall clock. They may not once it has jumped against the monotonic one, until it is back where
 * it was or has gone on evenly for an hour.
 */
function watchJumps(clock: Clock, events: Events): () => boolean {
  const offset = (): number => clock.now() - clock.monotonic();
  let trusted = offset();
  let last = trusted;
  /** When it jumped last, by the monotonic clock. */
  let jumpedAt: number | undefined;
  return () => {
    const present = offset();
    const isBack = Math.abs(present - trusted) <= JUMP_MS;
    if (!isBack && (jumpedAt === undefined || Math.abs(present - last) > JUMP_MS)) {
      jumpedAt = clock.monotonic();
      events.retentionPaused({ byMs: Math.round(present - trusted) });
    }
    last = present;
    if (jumpedAt !== undefined && !isBack && clock.monotonic() - jumpedAt < JUMP_MS) return false;
    if (jumpedAt !== undefined) events.retentionResumed({ byMs: Math.round(present - trusted) });
    jumpedAt = undefined;
    trusted = present;
    return true;
  };
}
