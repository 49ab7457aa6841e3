import type { KeyRate } from "#generated/clients/typescript/src/rest-types.ts";

/** The windows of a rate limit that the form offers, in milliseconds. */
export const WINDOWS = [
  ["1000", "second"],
  ["60000", "minute"],
  ["3600000", "hour"],
  ["86400000", "day"],
] as const;
export type WindowMs = (typeof WINDOWS)[number][0];

const MOST = 1_000_000;
/** The most agents that a table cell names. */
const NAMED = 3;

/** The rate limit of the form; undefined without a number, null if the number is not valid. */
export function rateOf(limit: string, windowMs: WindowMs): KeyRate | undefined | null {
  const text = limit.trim();
  if (text === "") return undefined;
  const number = Number(text);
  return /^\d+$/.test(text) && number >= 1 && number <= MOST ? { limit: number, window_ms: Number(windowMs) } : null;
}

/** `20 per minute`, or `20 in 90 s` for a window that is not a unit of time. */
export function rateText({ limit, window_ms }: KeyRate): string {
  const unit = WINDOWS.find(([ms]) => Number(ms) === window_ms)?.[1];
  return unit ? `${limit} per ${unit}` : `${limit} in ${window_ms / 1_000} s`;
}

export type Limits = { agents: readonly string[] | null; rate_limit: KeyRate | null };

/** The limits of a key or token in words; empty if it has none. */
export function limitsText({ agents, rate_limit }: Limits, named = Number.POSITIVE_INFINITY): string {
  const more = agents && agents.length > named ? ` +${agents.length - named}` : "";
  return [agents && agents.slice(0, named).join(", ") + more, rate_limit && rateText(rate_limit)]
    .filter(Boolean)
    .join(" · ");
}

/** The same, short enough for a table cell. */
export function shortLimits(limits: Limits): string {
  return limitsText(limits, NAMED);
}
