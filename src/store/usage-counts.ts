import type { Store, Surface, UsageCount, UsageCounts, UsageRow } from "./store.ts";

export const HOUR = 3_600_000;
const DAY = 24 * HOUR;

/** Whom something is counted for. */
export type CountedOf = { agent: string; surface: Surface; caller: string };
export type UsageQuery = { from: number; to: number; agent?: string };
type By = Parameters<Store["sumUsage"]>[0]["by"];
type Sums = Awaited<ReturnType<Store["sumUsage"]>>;

export const NO_COUNTS: UsageCounts = {
  messages: 0,
  completed: 0,
  failed: 0,
  cancelled: 0,
  attempts: 0,
  latencyMs: 0,
  input: 0,
  output: 0,
  cached: 0,
  reasoning: 0,
  cost: 0,
};
export const COUNT_NAMES = Object.keys(NO_COUNTS) as (keyof UsageCounts)[];

/** An attempt that reached a backend. */
export const countAttempt = (count: UsageCount, { usage, latencyMs }: UsageRow): void => {
  count.attempts++;
  count.latencyMs += latencyMs;
  count.input += usage.input;
  count.output += usage.output;
  if (!usage.more) return;
  count.cached += usage.more.cached;
  count.reasoning += usage.more.reasoning;
  count.cost += usage.more.cost;
};

/** Adds counters up, by what they are to be told apart by; a day is told by the time that it begins at. */
export const createSums = (by: By) => {
  const sums = new Map<string | number, { counts: UsageCounts; untold: number }>();
  return {
    add(count: UsageCount): void {
      const key = by === "day" ? Math.floor(count.hour / DAY) * DAY : count[by];
      let sum = sums.get(key);
      if (!sum) {
        sum = { counts: { ...NO_COUNTS }, untold: 0 };
        sums.set(key, sum);
      }
      for (const name of COUNT_NAMES) sum.counts[name] += count[name];
      if (count.input === 0 && count.output === 0) sum.untold += count.completed;
    },
    all: (): Sums => [...sums].map(([key, { counts, untold }]) => ({ key, counts, untold })),
  };
};
