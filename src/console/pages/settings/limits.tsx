import { type Limits, limitsText, shortLimits } from "#console/lib/key-limits.ts";

/** The agents, the rate limit and the budget of a key or token. */
export function LimitsOf({ of }: { of: Limits }) {
  const text = shortLimits(of);
  return text === "" ? null : <span title={limitsText(of)}>{text}</span>;
}
