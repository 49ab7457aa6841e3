import type { Clock } from "#core/clock.ts";
import { GatewayError } from "#core/errors.ts";

type Window = { times: Float64Array; next: number };

/**
 * At most `maxRequests` of a key in any span of `windowMs`, wherever the span begins: the times of the last `maxRequests` are kept, and
 * a request passes when the oldest of them is out of the window. Zero is off.
 */
export const createRateLimit = (clock: Clock, limit: () => { maxRequests: number; windowMs: number } | undefined) => {
  const windows = new Map<string, Window>();
  return (key: string): void => {
    const { maxRequests = 0, windowMs = 0 } = limit() ?? {};
    if (maxRequests === 0) return;
    let window = windows.get(key);
    if (window?.times.length !== maxRequests) {
      window = { times: new Float64Array(maxRequests).fill(-Infinity), next: 0 };
      windows.set(key, window);
    }
    const now = clock.monotonic();
    const wait = (window.times[window.next] as number) + windowMs - now;
    if (wait > 0) {
      const extra = { retryAfterMs: wait, rateLimit: { maxRequests, windowMs } };
      throw new GatewayError("rate-limited", `${maxRequests} requests per ${windowMs} ms`, extra);
    }
    window.times[window.next] = now;
    window.next = (window.next + 1) % maxRequests;
  };
};
