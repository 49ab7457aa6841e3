import type { UsageCounts as Counts, RpcMethods, UsageStats } from "#generated/rpc-types.ts";
import { GatewayError } from "#kit/errors.ts";
import { COUNT_NAMES, moreOf, NO_COUNTS, showCompleted, showUsage, type UsageCounts } from "#kit/usages.ts";
import type { CoreParts } from "./parts.ts";

type UsageQuery = RpcMethods["usage.stats"]["params"];

const HOUR = 3_600_000;
export const USAGE_RETENTION_MS = 400 * 24 * HOUR;

/** Totals of a span of time, whole hours, and the same split by a key. */
export function createUsageStats({ store, clock }: CoreParts) {
  /** `agents`: only their usage; undefined for all. */
  return async (
    { from: begin, to: end, groupBy }: Omit<UsageQuery, "agentName">,
    agents?: readonly string[],
  ): Promise<UsageStats> => {
    const now = clock.now();
    const from = hourOf(begin === undefined ? now - USAGE_RETENTION_MS : timeOf("from", begin));
    // Up to the end of the hour that runs: its counters are there already.
    const to = end === undefined ? hourOf(now) + HOUR : hourOf(timeOf("to", end) + HOUR - 1);
    if (from > to) throw new GatewayError("invalid-params", "`from` must not be after `to`.");
    const by = groupBy === "token" ? "caller" : (groupBy ?? "agent");
    const sums = await store.sumUsage({ from, to, by, ...(agents && { agents }) });
    const total = { ...NO_COUNTS };
    for (const { counts } of sums) for (const name of COUNT_NAMES) total[name] += counts[name];
    const allWithoutUsage = sums.reduce((sum, { withoutUsage }) => sum + withoutUsage, 0);
    const groups =
      groupBy === undefined
        ? []
        : sums.map(({ key, counts, withoutUsage }) => ({ key: nameOf(key), counts: show(counts, withoutUsage) }));
    return {
      from: new Date(from).toISOString(),
      to: new Date(to).toISOString(),
      total: show(total, allWithoutUsage),
      groups: groups.sort((a, b) => (a.key < b.key ? -1 : 1)),
    };
  };
}

function hourOf(time: number): number {
  return Math.floor(time / HOUR) * HOUR;
}

function timeOf(param: string, text: string): number {
  const time = Date.parse(text);
  if (Number.isNaN(time)) throw new GatewayError("invalid-params", `\`${param}\` is not a time.`);
  return time;
}

/** Hours and days are times; the surface has the name that the configuration gives it. */
function nameOf(key: string | number): string {
  if (typeof key === "number") return new Date(key).toISOString();
  return key === "hooks" ? "webhooks" : key;
}

function show({ messages, attempts, latencyMs, ...counts }: UsageCounts, withoutUsage: number): Counts {
  return {
    messages,
    turns: {
      completed: counts.completed,
      failed: counts.failed,
      cancelled: counts.cancelled,
      ...(withoutUsage > 0 && { untold: withoutUsage }),
    },
    attempts,
    tokens: (counts.completed > 0 ? showCompleted : showUsage)({
      ...counts,
      more: moreOf(counts.cached, counts.reasoning, counts.cost),
    }),
    latencyMs: { mean: attempts === 0 ? null : Math.round((latencyMs / attempts) * 1_000) / 1_000 },
  };
}
