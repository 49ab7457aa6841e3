import { type Clock, sleep } from "#kit/clock.ts";

/** The time in which a value is not read again, and the longest time that a scrape waits for it. */
const FRESH_MS = 10_000;
const WAIT_MS = 500;

export type Sampled<T> = ReturnType<typeof createSampled<T>>;

/**
 * A value of the store for metrics. Only a scrape reads it, at most once in ten seconds. While the store fails or does not answer, the last value
 * remains.
 */
export function createSampled<T>(clock: Clock, read: () => Promise<T>) {
  let value: T | undefined;
  let freshUntil = Number.NEGATIVE_INFINITY;
  let reading: Promise<void> | undefined;

  const start = (): Promise<void> =>
    read()
      .then(
        (latest) => {
          value = latest;
          freshUntil = clock.monotonic() + FRESH_MS;
        },
        () => {},
      )
      .finally(() => (reading = undefined));

  return {
    /** Reads the value if it is old. Never fails, and resolves after half a second at the latest. */
    async refresh(): Promise<void> {
      if (clock.monotonic() < freshUntil) return;
      reading ??= start();
      const read = new AbortController();
      await Promise.race([reading, sleep(clock, WAIT_MS, read.signal)]).finally(() => read.abort());
    },
    value: (): T | undefined => value,
  };
}
