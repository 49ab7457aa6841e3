import type { Clock } from "#kit/clock.ts";
import { GatewayError } from "#kit/errors.ts";

export type Limit = { maxRequests: number; windowMs: number };

type Window = { times: Float64Array; next: number };

/** Past so many keys, those that no window counts any more are let go. */
const KEYS = 10_000;

/** How many more may come now, and in how many ms all of the limit is free again; undefined where it is. */
export type RateUse = Limit & { left: number; wholeInMs: number | undefined };

/**
 * At most `maxRequests` of a key in any span of `windowMs`, wherever the span begins: the times of the last `maxRequests` are kept, and
 * a request passes when the oldest of them is out of the window.
 */
export const createRateLimit = (clock: Clock, limit: () => Limit | undefined) => {
  const windows = new Map<string, Window>();
  /** Counts a request, and answers how many more may come now; undefined where there is no limit. */
  const count = (key: string): number | undefined => {
    const { maxRequests = 0, windowMs = 0 } = limit() ?? {};
    if (maxRequests === 0) return undefined;
    let window = windows.get(key);
    if (window?.times.length !== maxRequests) {
      window = { times: new Float64Array(maxRequests).fill(-Infinity), next: 0 };
      windows.set(key, window);
      if (windows.size > KEYS) forgetIdle(windows, clock.monotonic() - windowMs);
    }
    const now = clock.monotonic();
    const wait = (window.times[window.next] as number) + windowMs - now;
    if (wait > 0) throw rateLimited({ maxRequests, windowMs }, wait);
    window.times[window.next] = now;
    window.next = (window.next + 1) % maxRequests;
    return outOf(window, now - windowMs);
  };
  /** Counts nothing. Undefined where there is no limit. */
  const read = (key: string): RateUse | undefined => {
    const { maxRequests = 0, windowMs = 0 } = limit() ?? {};
    if (maxRequests === 0) return undefined;
    const window = windows.get(key);
    if (window?.times.length !== maxRequests) return { maxRequests, windowMs, left: maxRequests, wholeInMs: undefined };
    const now = clock.monotonic();
    const newest = window.times[(window.next + maxRequests - 1) % maxRequests] as number;
    const wholeInMs = newest + windowMs - now;
    const left = outOf(window, now - windowMs);
    return { maxRequests, windowMs, left, wholeInMs: wholeInMs > 0 ? wholeInMs : undefined };
  };
  return { count, read };
};

export const rateLimited = ({ maxRequests, windowMs }: Limit, retryAfterMs: number): GatewayError =>
  new GatewayError("rate-limited", `At most ${maxRequests} requests in ${windowMs} ms.`, {
    retryAfterMs,
    rateLimit: { maxRequests, windowMs },
  });

/** How many of a window's times are not later than `before`. They are in order, from the oldest at `next` on. */
const outOf = ({ times, next }: Window, before: number): number => {
  let [low, high] = [0, times.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((times[(next + middle) % times.length] as number) <= before) low = middle + 1;
    else high = middle;
  }
  return low;
};

const forgetIdle = (windows: Map<string, Window>, before: number): void => {
  for (const [key, { times }] of windows) if (times.reduce((a, b) => Math.max(a, b)) < before) windows.delete(key);
};
