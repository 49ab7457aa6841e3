export { COUNT_NAMES, NO_COUNTS } from "#kit/usages.ts";

export const HOUR = 3_600_000;

/** The weight of a counter. Callers name models, so that there may be many. */
export const COUNT_BYTES = 400;
