import type { KeyBudget, KeyRate } from "#generated/clients/typescript/src/rest-types.ts";
import { count, money } from "./format.ts";

/** The windows of a rate limit that the form offers, in milliseconds. */
export const WINDOWS = [
  ["1000", "second"],
  ["60000", "minute"],
  ["3600000", "hour"],
  ["86400000", "day"],
] as const;
export type WindowMs = (typeof WINDOWS)[number][0];

/** The windows of a budget. */
export const PERIODS = [
  ["hour", "hour"],
  ["day", "day"],
  ["month", "month"],
] as const;
export type Period = (typeof PERIODS)[number][0];

const MOST = 1_000_000;
const MOST_TOKENS = 1_000_000_000_000;
/** The most agents that a table cell names. */
const NAMED = 3;

/** The rate limit of the form; undefined without a number, null if the number is not valid. */
export function rateOf(limit: string, windowMs: WindowMs): KeyRate | undefined | null {
  const text = limit.trim();
  if (text === "") return undefined;
  const number = Number(text);
  return /^\d+$/.test(text) && number >= 1 && number <= MOST ? { limit: number, window_ms: Number(windowMs) } : null;
}

/** The budget of the form; undefined without a number, null if a number is not valid. */
export function budgetOf(tokens: string, cost: string, per: Period): KeyBudget | undefined | null {
  const [most, price] = [numberOf(tokens), numberOf(cost)];
  if (most === undefined && price === undefined) return undefined;
  if (most !== undefined && !(Number.isSafeInteger(most) && most >= 1 && most <= MOST_TOKENS)) return null;
  if (price !== undefined && !(price >= 0.000001 && price <= MOST)) return null;
  const time_zone = Intl.DateTimeFormat().resolvedOptions().timeZone || "UTC";
  return { per, time_zone, ...(most !== undefined && { tokens: most }), ...(price !== undefined && { cost: price }) };
}

function numberOf(text: string): number | undefined {
  const written = text.trim();
  return written === "" ? undefined : /^\d*\.?\d+$/.test(written) ? Number(written) : Number.NaN;
}

/** `200,000 tokens and a cost of 2.50 per day` */
export function budgetText({ per, tokens, cost }: KeyBudget): string {
  const limits = [tokens !== undefined && `${count(tokens)} tokens`, cost !== undefined && `a cost of ${money(cost)}`];
  return `${limits.filter(Boolean).join(" and ")} per ${per}`;
}

/** `20 per minute`, or `20 in 90 s` for a window that is not a unit of time. */
export function rateText({ limit, window_ms }: KeyRate): string {
  const unit = WINDOWS.find(([ms]) => Number(ms) === window_ms)?.[1];
  return unit ? `${limit} per ${unit}` : `${limit} in ${window_ms / 1_000} s`;
}

export type Limits = { agents: readonly string[] | null; rate_limit: KeyRate | null; budget: KeyBudget | null };

/** The limits of a key or token in words; empty if it has none. */
export function limitsText({ agents, rate_limit, budget }: Limits, named = Number.POSITIVE_INFINITY): string {
  const more = agents && agents.length > named ? ` +${agents.length - named}` : "";
  const texts = [
    agents && agents.slice(0, named).join(", ") + more,
    rate_limit && rateText(rate_limit),
    budget && budgetText(budget),
  ];
  return texts.filter(Boolean).join(" · ");
}

/** The same, short enough for a table cell. */
export function shortLimits(limits: Limits): string {
  return limitsText(limits, NAMED);
}
