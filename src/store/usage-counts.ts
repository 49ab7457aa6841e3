import type { UsageCounts } from "./store.ts";

export const HOUR = 3_600_000;

/** The weight of a counter. Callers name models, so that there may be many. */
export const COUNT_BYTES = 400;

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
