import type { Clock } from "#core/clock.ts";
import type { Store } from "#store/store.ts";
import { createRateLimit, type Limit, rateLimited } from "./rate-limit.ts";

/** Counts a request of a key; throws past the limit, and answers how many more may come. A promise where others count too. */
export type CountRequest = (key: string) => number | undefined | Promise<number | undefined>;

/** The rate limit of one surface: in this process, or over all gateways that share its store. */
export const rateLimitOf = (
  { shared }: Pick<Store, "shared">,
  surface: string,
  clock: Clock,
  limit: () => Limit | undefined,
): CountRequest => {
  if (!shared) return createRateLimit(clock, limit);
  const count = async (key: string, now: Limit): Promise<number> => {
    const counted = await shared.countRequest(`${surface}\0${key}`, now);
    if ("left" in counted) return counted.left;
    throw rateLimited(now, counted.waitMs);
  };
  return (key) => {
    const now = limit();
    return now && now.maxRequests > 0 ? count(key, now) : undefined;
  };
};
