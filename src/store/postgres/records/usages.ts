import type { Usage } from "#store/store.ts";
import { number, optional } from "./sql.ts";

/** Cached tokens, those of reasoning, and the cost. */
type More = readonly [cached: number, reasoning: number, cost: number];

export const moreOf = (usage: Usage | undefined): More | undefined =>
  usage?.more && [usage.more.cached, usage.more.reasoning, usage.more.cost];

export const usageOf = (input: unknown, output: unknown, more: unknown): Usage => {
  const usage = { input: number(input), output: optional(output) ?? 0 };
  if (!more) return usage;
  const [cached, reasoning, cost] = more as More;
  return { ...usage, more: { cached, reasoning, cost } };
};
