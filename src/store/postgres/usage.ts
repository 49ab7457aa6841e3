import { moreOf } from "#kit/usages.ts";
import type { Store, Usage, UsageCount, UsageCounts } from "#store/store.ts";
import { COUNT_NAMES } from "#store/usage-counts.ts";
import { usageOf } from "#store/views.ts";
import { type Frame, LANE } from "./frame.ts";
import { keepText, readText } from "./texts.ts";

const DAY = 24 * 3_600_000;
const COLUMNS = COUNT_NAMES.map((name) => (name === "latencyMs" ? "latency_ms" : name));
const SUMS = COUNT_NAMES.map((name, n) => `sum(${COLUMNS[n]})::float8 as "${name}"`).join(", ");
/** The counters of all lanes. */
const WHOLE = `select hour, agent, model, surface, caller, ${COLUMNS.map((name) => `sum(${name}) as ${name}`).join(", ")} from usage_counts`;
const KEYS = {
  agent: "agent",
  model: "model",
  surface: "surface",
  caller: "caller",
  hour: "hour",
  day: `hour - hour % ${DAY}`,
} as const;

type Query = { from: number; to: number; agent?: string };

export const usageMethods = (frame: Frame): Pick<Store, "countUsage" | "readUsage" | "sumUsage"> => ({
  countUsage: async ({ now, model, usage, latencyMs, ...of }) => {
    const row: UsageAddition = { ...usageKeys(now, of, model), attempts: 1, latency: latencyMs, ...keepUsage(usage) };
    await frame.call("count_usage", [JSON.stringify([row]), LANE]);
  },
  readUsage: async (query) => {
    const { where, values } = filterOf(query);
    const rows = await frame.query<UsageCount>(
      `select hour, agent, model, surface, caller, ${SUMS} from usage_counts ${where}
        group by hour, agent, model, surface, caller order by hour`,
      values,
    );
    return rows.map(({ hour, agent, model, surface, caller, ...counts }) => {
      return { hour, agent, model: readText(model), surface, caller: readText(caller), ...counts };
    });
  },
  sumUsage: async ({ by, ...query }) => {
    const { where, values } = filterOf(query);
    const rows = await frame.query<UsageCounts & { key: string | number; untold: number }>(
      `select ${KEYS[by]} as key, ${SUMS}, coalesce(sum(completed) filter (where input = 0 and output = 0), 0)::float8 as untold
        from (${WHOLE} ${where} group by hour, agent, model, surface, caller) as whole group by 1`,
      values,
    );
    return rows.map(({ key, untold, ...counts }) => {
      return { key: typeof key === "string" ? readText(key) : key, counts, untold };
    });
  },
});

const filterOf = ({ from, to, agent }: Query) => ({
  where: `where hour >= $1 and hour < $2 ${agent === undefined ? "" : "and agent = $3"}`,
  values: [Math.ceil(clamp(from)), Math.ceil(clamp(to)), ...(agent === undefined ? [] : [agent])],
});

const clamp = (time: number): number => Math.min(Math.max(time, 0), Number.MAX_SAFE_INTEGER);

/** Cached tokens, those of reasoning, and the cost. */
export type MoreRow = readonly [cached: number, reasoning: number, cost: number];

export const readUsage = (input: number, output: number, more: MoreRow | null): Usage =>
  usageOf(input, output, more ? moreOf(...more) : undefined);

export const keepUsage = ({ input, output, more }: Usage) => {
  const row: MoreRow | undefined = more && [more.cached, more.reasoning, more.cost];
  return { input, output, more: row };
};

/** What is added to the counters of an hour, as `add_usage` takes it. */
export type UsageAddition = {
  hour: number;
  agent: string;
  model: string;
  surface: string;
  caller: string;
} & Partial<
  Record<"messages" | "completed" | "failed" | "cancelled" | "attempts" | "latency" | "input" | "output", number> & {
    more: MoreRow | undefined;
  }
>;

const HOUR = 3_600_000;

/** Names as the counters keep them. */
export const usageKeys = (at: number, of: { agent: string; surface: string; caller: string }, model: string) => ({
  hour: at - (at % HOUR),
  agent: of.agent,
  model: keepText(model),
  surface: of.surface,
  caller: keepText(of.caller),
});
