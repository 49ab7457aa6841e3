/** This number of events is given to agents in a fraction of a second. */
const FEW = 500;
/** A beat counts as running for this time after its end. */
const RECENT_MS = 3_000;
const LONGEST_MS = 100;
/** The number of transactions that the usual duration is averaged over. */
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
 * Returns a function that computes the pause after a transaction that stored new events. They share the database with the turns that handle
 * events, and must not be stored faster than these run. The pause depends on the usual duration of transactions.
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
