import type { Clock } from "#kit/clock.ts";
import type { Store } from "#store/store.ts";
import { createRateLimit, type Limit, type RateUse, rateLimited } from "./rate-limit.ts";

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
