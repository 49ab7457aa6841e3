import { Ordered } from "#store/live/ordered.ts";
import type { Scale } from "#store/live/weights.ts";
import type { Records } from "#store/rules/records.ts";
import type { UsageCount } from "#store/store.ts";
import { COUNT_BYTES, HOUR, NO_COUNTS } from "#store/usage-counts.ts";

type HourOfCounts = { hour: number; counts: Map<string, UsageCount> };

export const usageRecords = (scale: Scale): Records["usage"] => {
  const hours = new Ordered<number, HourOfCounts>();
  const counterOf = (of: Parameters<Records["usage"]["add"]>[0]): UsageCount => {
    const known = hours.get(of.hour);
    const counts = known?.counts ?? new Map<string, UsageCount>();
    if (!known) hours.set(of.hour, { hour: of.hour, counts });
    const key = `${of.agent}\0${of.model}\0${of.surface}\0${of.caller}`;
    const counted = counts.get(key);
    if (counted) return counted;
    const count = { ...of, ...NO_COUNTS };
    counts.set(key, count);
    scale.weigh(0, COUNT_BYTES);
    return count;
  };
  return {
    add: (of, change) => {
      const count = counterOf(of);
      for (const name of Object.keys(change) as (keyof typeof change)[]) count[name] += change[name] ?? 0;
    },
    nextHour: (from) => hours.after(from - 1, 1)[0]?.hour,
    between: (from, to, agent) =>
      hours
        .after(from - 1, Infinity)
        .filter(({ hour }) => hour < to)
        .flatMap(({ counts }) => [...counts.values()])
        .filter((count) => agent === undefined || count.agent === agent)
        .map((count) => ({ ...count })),
    deleteEndedBy: (time) => {
      for (const { hour, counts } of hours.through(time - HOUR)) {
        scale.weigh(counts.size * COUNT_BYTES, 0);
        hours.delete(hour);
      }
    },
  };
};
