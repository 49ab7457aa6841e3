/** Time, so that tests can own it. `now` is the wall clock and may jump; `monotonic` never goes back. Both in milliseconds. */
export interface Clock {
  now(): number;
  monotonic(): number;
  /** Calls `fire` once after `ms`; the returned function cancels it. A timer alone never keeps the process alive. */
  after(ms: number, fire: () => void): () => void;
}

/** The longest time that one timer of Node can hold: 24 days. */
const LONGEST_TIMER = 2 ** 31 - 1;

export const systemClock: Clock = {
  now: () => Date.now(),
  monotonic: () => performance.now(),
  after: (ms, fire) => (ms <= LONGEST_TIMER ? startTimer(ms, fire) : startLongTimer(ms, fire)),
};

function startTimer(ms: number, fire: () => void): () => void {
  const timer = setTimeout(fire, Math.max(ms, 0)).unref();
  return () => clearTimeout(timer);
}

function startLongTimer(ms: number, fire: () => void): () => void {
  let stop = startTimer(LONGEST_TIMER, () => {
    stop = systemClock.after(ms - LONGEST_TIMER, fire);
  });
  return () => stop();
}

/** Resolves after `ms`, or when one of the signals aborts. */
export function sleep(clock: Pick<Clock, "after">, ms: number, ...signals: readonly AbortSignal[]): Promise<void> {
  return new Promise((resolve) => {
    const wake = () => {
      stop();
      for (const signal of signals) signal.removeEventListener("abort", wake);
      resolve();
    };
    const stop = clock.after(ms, wake);
    for (const signal of signals) {
      if (signal.aborted) return wake();
      signal.addEventListener("abort", wake);
    }
  });
}
