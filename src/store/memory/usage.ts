import type { Scale } from "#store/live/weights.ts";
import type { Records } from "#store/rules/records.ts";
import type { UsageCount } from "#store/store.ts";
import { COUNT_BYTES, HOUR, NO_COUNTS } from "#store/usage-counts.ts";

export const usageRecords = (scale: Scale): Records["usage"] => {
  const hours = new Map<number, Map<string, UsageCount>>();
  const counterOf = (of: Parameters<Records["usage"]["add"]>[0]): UsageCount => {
    const counts = hours.get(of.hour) ?? new Map<string, UsageCount>();
    hours.set(of.hour, counts);
    const key = `${of.agent}\0${of.model}\0${of.surface}\0${of.caller}`;
    const known = counts.get(key);
    if (known) return known;
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
    between: (from, to, agent) =>
      [...hours]
        .filter(([hour]) => hour >= from && hour < to)
        .sort(([one], [other]) => one - other)
        .flatMap(([, counts]) => [...counts.values()])
        .filter((count) => agent === undefined || count.agent === agent)
        .map((count) => ({ ...count })),
    deleteEndedBy: (time) => {
      for (const [hour, counts] of hours) {
        if (hour + HOUR > time) continue;
        scale.weigh(counts.size * COUNT_BYTES, 0);
        hours.delete(hour);
      }
    },
  };
};
