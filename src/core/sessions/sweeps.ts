import { GATEWAY_RETENTION_MS } from "#core/gateway-stream.ts";
import type { CoreParts } from "#core/parts.ts";
import { MAX_ATTEMPTS } from "#core/turns/attempt.ts";
import { USAGE_RETENTION_MS } from "#core/usage.ts";
import type { Clock } from "#kit/clock.ts";
import type { Events } from "#observe/events.ts";

const EVERY_MS = 1_000;
const MORE_MS = 10;
/** Up to this number, gateways on one store sweep in turn, each less often. With more, the turns of dead gateways would take too long. */
const MOST_IN_TURN = 3;

/** The largest difference between the wall clock and the monotonic clock that is not a jump, and the time that the wall clock must run evenly after one. */
const JUMP_MS = 3_600_000;

type SweepParts = Pick<CoreParts, "store" | "clock" | "events" | "settings">;

/** Sweeps the store regularly, one slice at a time: ended leases, old records, expired keys. Returns a function that stops it. */
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
    // After a jump of the clock, nothing is deleted because of its age: a sweep cannot be undone.
    const before = (ms: number): number => (steady ? now - ms : 0);
    const more = await store.sweep({
      now,
      maxAttempts: MAX_ATTEMPTS,
      lost: { name: "turn-failed", detail: "the gateway that ran the turn was lost in every attempt" },
      sessionsBefore: before(retentionMs),
      webhookSessionsBefore: before(webhookRetentionMs),
      usageBefore: before(USAGE_RETENTION_MS),
      gatewayBefore: before(GATEWAY_RETENTION_MS),
      eventsBefore: before(eventRetentionMs),
      keysBefore: before(0),
    });
    sweepAfter(more ? MORE_MS : EVERY_MS * Math.min(store.shared?.gateways() ?? 1, MOST_IN_TURN));
  };
  const run = (): void => {
    sweep().catch((error: unknown) => {
      if (!isStopped) events.storeFailed({ operation: "sweep", error });
      sweepAfter(EVERY_MS);
    });
  };
  // The first sweep is early, so that sweeps make progress even if every gateway dies within its first second.
  sweepAfter(MORE_MS);

  return () => {
    isStopped = true;
    stopTimer();
  };
}

/**
 * Returns a function that returns true if ages may be computed from the wall clock. They may not after the wall clock has jumped, until it is
 * back or has run evenly for an hour.
 */
function watchJumps(clock: Clock, events: Events): () => boolean {
  const offset = (): number => clock.now() - clock.monotonic();
  let trusted = offset();
  let last = trusted;
  /** The monotonic time of the last jump. */
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
