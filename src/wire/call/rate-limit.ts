import type { Clock } from "#kit/clock.ts";
import { GatewayError } from "#kit/errors.ts";
import type { Store } from "#store/store.ts";

export type Limit = { maxRequests: number; windowMs: number };

type Window = { times: Float64Array; next: number };

/** Past this many keys, those that no window counts any more are dropped. */
const KEYS = 10_000;

/** How many more may come now, and in how many ms all of the limit is free again; undefined where it is. */
export type RateUse = Limit & { left: number; wholeInMs: number | undefined };

/**
 * At most `maxRequests` of a key in any span of `windowMs`, wherever the span begins: the times of the last `maxRequests` are kept, and
 * a request passes when the oldest of them is out of the window.
 */
const createRateLimit = (clock: Clock, limit: () => Limit | undefined) => {
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

const rateLimited = ({ maxRequests, windowMs }: Limit, retryAfterMs: number): GatewayError =>
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

/** Counts a request of a key; throws past the limit, and answers how many more may come. A promise where others count too. */
export type CountRequest = (key: string) => number | undefined | Promise<number | undefined>;

/** How much of their limit these keys have used, in their order; undefined where there is none. */
export type ReadRates = (keys: readonly string[]) => Promise<(RateUse | undefined)[]>;

/** The rate limit of one surface: in this process, or over all gateways that share its store. */
export const rateLimitOf = (
  { shared }: Pick<Store, "shared">,
  surface: string,
  clock: Clock,
  limit: () => Limit | undefined,
): { count: CountRequest; read: ReadRates } => {
  if (!shared) {
    const { count, read } = createRateLimit(clock, limit);
    return { count, read: async (keys) => keys.map(read) };
  }
  const keyOf = (key: string) => `${surface}\0${key}`;
  const count = async (key: string, now: Limit): Promise<number> => {
    const counted = await shared.countRequest(keyOf(key), now);
    if ("left" in counted) return counted.left;
    throw rateLimited(now, counted.waitMs);
  };
  return {
    count: (key) => {
      const now = limit();
      return now && now.maxRequests > 0 ? count(key, now) : undefined;
    },
    read: async (keys) => {
      const now = limit();
      if (!now || now.maxRequests === 0) return keys.map(() => undefined);
      const uses = await shared.readRequests(keys.map(keyOf), now);
      return uses.map((use) => ({ ...now, ...use }));
    },
  };
};
