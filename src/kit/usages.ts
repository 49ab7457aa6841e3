import type { Usage as ShownUsage } from "#generated/rest-types.ts";

/** Usage and its arithmetic: only whole numbers, so that sums never drift. Every module may import it. */

/** The parts of a usage that are mostly 0. `cost` is in billionths of whatever currency the prices are in. */
export type MoreUsage = { cached: number; reasoning: number; cost: number };

/** Tokens, and `more` only where any of it is not 0. */
export type Usage = { input: number; output: number; more?: MoreUsage | undefined };

export const NO_USAGE: Usage = { input: 0, output: 0 };

/** Counters: messages that started a turn, turns that ended (by status), and attempts that reached a backend with their usage. */
export const NO_COUNTS = {
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
export type UsageCounts = typeof NO_COUNTS;
export const COUNT_NAMES = Object.keys(NO_COUNTS) as (keyof UsageCounts)[];

/** An answer always has input and output, so a usage of 0 was not reported. */
export function isUnreported({ input, output }: Usage): boolean {
  return input + output === 0;
}

const BILLION = 1_000_000_000;

/**
 * The usage that a backend reports. `cached` is the part of `input` that the provider had read before. `reasoning` is the part of
 * `output` that no reader sees. `cost`, in billionths, is set by a backend that knows prices: the prices of the models that were
 * asked, at the time of the request.
 */
export type Used = {
  input: number;
  output: number;
  cached?: number | undefined;
  reasoning?: number | undefined;
  cost?: number | undefined;
};

const LONGEST_NAME = 128;
/** More than any attempt uses: sums of invented numbers must still fit into every store. */
const MOST_TOKENS = 1e12;
const MOST_COST = 1e15;

/** A backend may give its model any name. */
export function modelNamed(said: string): string | undefined {
  return said.slice(0, LONGEST_NAME) || undefined;
}

/** The usage that a backend reported; its `input` and `output` are known to be counts. No part is more than its whole. */
export function usageOf(told: Used): Usage {
  const { cached, reasoning, cost } = told;
  const input = Math.min(told.input, MOST_TOKENS);
  const output = Math.min(told.output, MOST_TOKENS);
  if (!cached && !reasoning && !cost) return { input, output };
  const more = moreOf(countOf(cached, input), countOf(reasoning, output), countOf(cost, MOST_COST));
  return more ? { input, output, more } : { input, output };
}

function countOf(value: number | undefined, most: number): number {
  return Number.isSafeInteger(value) && (value as number) > 0 ? Math.min(value as number, most) : 0;
}

/** Leaves out what is nothing. */
export function moreOf(cached: number, reasoning: number, cost: number): MoreUsage | undefined {
  return cached === 0 && reasoning === 0 && cost === 0 ? undefined : { cached, reasoning, cost };
}

function addMore(one: MoreUsage | undefined, other: MoreUsage | undefined): MoreUsage | undefined {
  if (!one || !other) return one ?? other;
  return {
    cached: one.cached + other.cached,
    reasoning: one.reasoning + other.reasoning,
    cost: one.cost + other.cost,
  };
}

export function addUsage(one: Usage | undefined, other: Usage): Usage {
  if (!one) return other;
  const [input, output] = [one.input + other.input, one.output + other.output];
  return one.more || other.more ? { input, output, more: addMore(one.more, other.more) } : { input, output };
}

/** Usage as callers see it: a `cached`, `reasoning` or `cost` of 0 is left out. */
export function showUsage({ input, output, more }: Usage): ShownUsage {
  const shown: ShownUsage = { input, output, total: input + output };
  if (!more) return shown;
  if (more.cached > 0) shown.cached = more.cached;
  if (more.reasoning > 0) shown.reasoning = more.reasoning;
  if (more.cost > 0) shown.cost = more.cost / BILLION;
  return shown;
}

/** The same for completed turns. */
export function showCompleted(usage: Usage): ShownUsage {
  const shown = showUsage(usage);
  if (isUnreported(usage)) shown.unknown = true;
  return shown;
}
