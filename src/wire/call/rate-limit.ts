import type { Clock } from "#kit/clock.ts";
import { GatewayError } from "#kit/errors.ts";
import type { RateLimit, Store } from "#store/store.ts";

export type Limit = RateLimit;

/** The requests that are left now, and the ms until all of the limit is free again; undefined if all is free. */
type RateUse = Limit & { left: number; wholeInMs: number | undefined };

/**
 * Counts a request of a key, and returns the number of remaining requests. Throws above the limit `own`, or without it above the limit of the surface. Undefined if
 * there is no limit. A promise only if other gateways count too: a body that ends in the packet of its head must be read at once.
 */
export type CountRequest = (key: string, own?: Limit) => number | undefined | Promise<number | undefined>;

/** The use of the limit by these keys, in their order; undefined if there is no limit. */
type ReadRates = (keys: readonly string[]) => Promise<(RateUse | undefined)[]>;

type Counted = { left: number } | { waitMs: number };
type Left = Pick<RateUse, "left" | "wholeInMs">;
type Counts = {
  countRequest(key: string, limit: Limit): Counted | Promise<Counted>;
  readRequests(keys: readonly string[], limit: Limit): readonly Left[] | Promise<readonly Left[]>;
};

/** The rate limit of one surface: in this process, or over all gateways that share its store. */
export function rateLimitOf(
  { shared }: Pick<Store, "shared">,
  surface: string,
  clock: Clock,
  limit: () => Limit | undefined,
): { count: CountRequest; read: ReadRates } {
  const counts: Counts = shared ?? createCounts(clock);
  const keyOf = (key: string) => `${surface}\0${key}`;
  return {
    count(key, own) {
      const now = own ?? limit();
      if (!now || now.maxRequests === 0) return undefined;
      const counted = counts.countRequest(keyOf(key), now);
      return counted instanceof Promise ? counted.then((one) => leftOf(one, now)) : leftOf(counted, now);
    },
    async read(keys) {
      const now = limit();
      if (!now || now.maxRequests === 0) return keys.map(() => undefined);
      const uses = await counts.readRequests(keys.map(keyOf), now);
      return uses.map((use) => ({ ...now, ...use }));
    },
  };
}

function leftOf(counted: Counted, { maxRequests, windowMs }: Limit): number {
  if ("left" in counted) return counted.left;
  const words = `At most ${maxRequests} requests in ${windowMs} ms.`;
  const { waitMs: retryAfterMs } = counted;
  throw new GatewayError("rate-limited", words, { retryAfterMs, rateLimit: { maxRequests, windowMs } });
}

/** The times of the last requests of a key, the oldest at `next`. */
type Window = { times: Float64Array; next: number; windowMs: number };

/** Past this many keys, keys that count for least are dropped. */
const KEYS = 10_000;

/**
 * At most `maxRequests` of a key in any span of `windowMs`, wherever the span begins: the times of the last `maxRequests` are kept, and
 * a request passes when the oldest of them is out of the window.
 */
function createCounts(clock: Clock): Counts {
  const windows = new Map<string, Window>();
  const windowOf = (key: string, { maxRequests, windowMs }: Limit): Window => {
    const known = windows.get(key);
    if (known?.times.length === maxRequests) {
      known.windowMs = windowMs;
      return known;
    }
    const window = { times: new Float64Array(maxRequests).fill(-Infinity), next: 0, windowMs };
    windows.set(key, window);
    if (windows.size > KEYS) forgetIdle(windows, clock.monotonic());
    return window;
  };
  return {
    countRequest(key, limit) {
      const window = windowOf(key, limit);
      const now = clock.monotonic();
      const waitMs = (window.times[window.next] as number) + limit.windowMs - now;
      if (waitMs > 0) return { waitMs };
      window.times[window.next] = now;
      window.next = (window.next + 1) % limit.maxRequests;
      return { left: freeIn(window, now - limit.windowMs) };
    },
    readRequests(keys, { maxRequests, windowMs }) {
      const now = clock.monotonic();
      return keys.map((key) => {
        const window = windows.get(key);
        if (window?.times.length !== maxRequests) return { left: maxRequests, wholeInMs: undefined };
        const newest = window.times.at(window.next - 1) as number;
        const wholeInMs = newest + windowMs - now;
        return { left: freeIn(window, now - windowMs), wholeInMs: wholeInMs > 0 ? wholeInMs : undefined };
      });
    },
  };
}

/** Counts keys in spans of `ms` that begin with a key's first. The table is bounded: the key that was added first is forgotten. */
export function createTally(clock: Clock, ms: number) {
  const spans = new Map<string, { since: number; count: number }>();
  return (key: string): { since: number; count: number } => {
    const now = clock.monotonic();
    let span = spans.get(key);
    if (!span || now - span.since >= ms) {
      spans.delete(key);
      if (spans.size >= KEYS) spans.delete(spans.keys().next().value as string);
      span = { since: now, count: 0 };
      spans.set(key, span);
    }
    span.count++;
    return span;
  };
}

/** The number of a window's times that are not later than `before`. The times are in order, from the oldest at `next` on. */
function freeIn({ times, next }: Window, before: number): number {
  let [low, high] = [0, times.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((times[(next + middle) % times.length] as number) <= before) low = middle + 1;
    else high = middle;
  }
  return low;
}

function forgetIdle(windows: Map<string, Window>, now: number): void {
  for (const [key, { times, next, windowMs }] of windows)
    if ((times.at(next - 1) as number) < now - windowMs) windows.delete(key);
}
