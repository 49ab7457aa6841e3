import { GATEWAY_RETENTION_MS } from "#core/gateway-stream.ts";
import type { CoreParts } from "#core/parts.ts";
import { MAX_ATTEMPTS } from "#core/turns/attempt.ts";
import { USAGE_RETENTION_MS } from "#core/usage.ts";
import type { Clock } from "#kit/clock.ts";
import type { Events } from "#observe/events.ts";

/** The interval of sweeps, and the pause if a sweep has more to do. */
const EVERY_MS = 1_000;
const MORE_MS = 10;
/** Gateways on one store share the sweeps: each multiplies its interval by their number, but at most by this, so that dead gateways do not delay sweeps too long. */
const MOST_SHARING = 3;

/** A larger change of the wall clock against the monotonic clock is a jump. Also the time for which the wall clock must run without a jump before it is trusted again. */
const JUMP_MS = 3_600_000;

type SweepParts = Pick<CoreParts, "store" | "clock" | "events" | "settings">;

/** Sweeps the store regularly, a limited number of records at a time: ended leases, old records, expired keys. Returns a function that stops the sweeps. */
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
    // After a jump of the clock, nothing is deleted by age, because a deletion cannot be undone.
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
    sweepAfter(more ? MORE_MS : EVERY_MS * Math.min(store.shared?.gateways() ?? 1, MOST_SHARING));
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
 * Returns a function that returns true if ages can be computed from the wall clock. It returns false after the wall clock has jumped, until the
 * clock is back at the expected time or has run for an hour without another jump.
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
