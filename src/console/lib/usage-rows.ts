import type { RpcMethods } from "#generated/clients/typescript/src/rpc.ts";

type UsageStats = RpcMethods["usage.stats"]["result"];
type Counts = UsageStats["total"];
export type UsageRow = {
  key: string;
  messages: number;
  completed: number;
  failed: number;
  cancelled: number;
  input: number;
  output: number;
  total: number;
  cost: number | undefined;
  latencyMs: number | null;
};

/** The text of the money column where models have prices. */
function costOf({ tokens }: Counts): number | undefined {
  return (tokens as { cost?: number }).cost;
}

export function rowOf(key: string, counts: Counts): UsageRow {
  const { messages, turns, tokens, latencyMs } = counts;
  const { completed, failed, cancelled } = turns;
  const { input, output, total } = tokens;
  const cost = costOf(counts);
  return { key, messages, completed, failed, cancelled, input, output, total, cost, latencyMs: latencyMs.mean };
}

/** The top of an axis: the next of 1, 2, 5, 10, 20, … */
export function topOf(most: number): number {
  const unit = 10 ** Math.floor(Math.log10(Math.max(1, most)));
  return ([1, 2, 5].find((one) => one * unit >= most) ?? 10) * unit;
}

/** The change from the previous period in percent; undefined if that was empty. */
export function changeOf(now: number, before: number | undefined): string | undefined {
  if (!before) return undefined;
  const percent = Math.round((now / before - 1) * 100);
  return percent === 0 ? "±0 %" : `${percent > 0 ? "+" : "−"}${Math.abs(percent)} %`;
}

/** The groups as rows, the largest first; days and hours in their order. */
export function rowsOf(groups: UsageStats["groups"], isByTime: boolean): UsageRow[] {
  const rows = groups.map(({ key, counts }) => rowOf(key, counts));
  return isByTime ? rows : rows.sort((one, other) => other.total - one.total || other.messages - one.messages);
}

const STEPS = { hour: 3_600_000, day: 86_400_000 } as const;

/** Rows of days or hours without gaps: what had no use is a row of zeros. */
export function withGaps(rows: readonly UsageRow[], from: number, to: number, by: "hour" | "day"): UsageRow[] {
  const known = new Map(rows.map((row) => [new Date(row.key).getTime(), row]));
  const step = STEPS[by];
  const filled: UsageRow[] = [];
  for (let at = Math.floor(from / step) * step; at < to; at += step)
    filled.push(known.get(at) ?? { ...NONE, key: new Date(at).toISOString() });
  return filled;
}
const NONE = {
  messages: 0,
  completed: 0,
  failed: 0,
  cancelled: 0,
  input: 0,
  output: 0,
  total: 0,
  cost: undefined,
  latencyMs: null,
};

const COLUMNS = ["key", ...(Object.keys(NONE) as (keyof typeof NONE)[])] as const;

/** A cell that a spreadsheet reads as a text, never as a formula. */
function cellOf(value: string | number | null | undefined): string {
  const text = String(value ?? "");
  const safe = /^[=+\-@\t\r]/.test(text) && typeof value === "string" ? `'${text}` : text;
  return /[",\n\r]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}

/** The rows as a CSV file. */
export function csvOf(rows: readonly UsageRow[], keyName: string): string {
  return [
    [keyName, ...COLUMNS.slice(1)].join(","),
    ...rows.map((row) => COLUMNS.map((name) => cellOf(row[name])).join(",")),
  ].join("\r\n");
}
