/** Time, so that tests can own it. `now` is the wall clock and may jump; `monotonic` never goes back. Both in milliseconds. */
export interface Clock {
  now(): number;
  monotonic(): number;
  /** Calls `fire` once after `ms`; the returned function cancels it. A timer alone never keeps the process alive. */
  after(ms: number, fire: () => void): () => void;
}

const LONGEST_TIMER = 2 ** 31 - 1;

export const systemClock: Clock = {
  now: () => Date.now(),
  monotonic: () => performance.now(),
  after: (ms, fire) => {
    const timer = setTimeout(fire, Math.min(Math.max(ms, 0), LONGEST_TIMER)).unref();
    return () => clearTimeout(timer);
  },
};
