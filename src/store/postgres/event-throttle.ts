/** Up to this number of waiting events there is no pause: agents handle them in a fraction of a second. */
const FEW = 500;
/** A beat counts as running for this time after its end. */
const RECENT_MS = 3_000;
/** The longest pause. */
const LONGEST_MS = 100;
/** The number of recent transactions over which the usual duration is averaged. */
const AVERAGED = 8;

type Parts = {
  /** The number of unfinished events. */
  waiting(): number;
  /** True if a beat is running. */
  isBeating(): boolean;
  /** A monotonic time. */
  time(): number;
};

/**
 * Returns a function that computes the pause after a transaction that stored new events. Without it, new events would be stored faster than
 * turns can handle them, because both use the same database. The pause grows with the usual duration of a transaction and the number of waiting events.
 */
export function createEventThrottle({ waiting, isBeating, time }: Parts): (tookMs: number) => number {
  let usualMs = 0;
  let beatAt = Number.NEGATIVE_INFINITY;
  return (tookMs) => {
    usualMs += (tookMs - usualMs) / AVERAGED;
    if (isBeating()) beatAt = time();
    const behind = waiting() / FEW - 1;
    if (behind <= 0 || time() - beatAt > RECENT_MS) return 0;
    return Math.min(Math.min(tookMs, usualMs) * behind * behind, LONGEST_MS);
  };
}
