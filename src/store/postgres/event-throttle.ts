/** Events that are handed over in a fraction of a second. */
const FEW = 500;
/** Between two beats, too, events are being handed over. */
const LATELY_MS = 3_000;
const LONGEST_MS = 100;
/** The number of transactions that the usual duration is averaged over. */
const MEANT = 8;

type Parts = {
  /** Events that have not ended. */
  waiting(): number;
  /** Some agent's events are being handed over. */
  isHandingOver(): boolean;
  /** A monotonic time. */
  time(): number;
};

/**
 * The time that new events are held back after a transaction that took some in. They share the database with the turns that hand
 * events over, and must not come faster than these go for long. The pause depends on the usual duration of transactions.
 */
export function createEventThrottle({ waiting, isHandingOver, time }: Parts): (tookMs: number) => number {
  let usualMs = 0;
  let handedAt = Number.NEGATIVE_INFINITY;
  return (tookMs) => {
    usualMs += (tookMs - usualMs) / MEANT;
    if (isHandingOver()) handedAt = time();
    const behind = waiting() / FEW - 1;
    if (behind <= 0 || time() - handedAt > LATELY_MS) return 0;
    return Math.min(Math.min(tookMs, usualMs) * behind * behind, LONGEST_MS);
  };
}
