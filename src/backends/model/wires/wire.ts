import type { Used } from "#backends/backend.ts";

/**
 * Text that is nothing else. `block` is the SDK's name for the part of the answer it belongs to, where it has one; `used` what the event tells of all
 * that was used so far.
 */
export type Plain = { text: string; block: string | undefined; used?: Used };

/** How an answer ended, or a part of that. */
export type Ending = { finish?: "stop" | "length" | "filter"; used?: Used };

/**
 * What an event of a provider's stream is:
 * - plain text;
 * - `quiet` or `beside` the text: it says nothing that matters where all the rest is text; `quiet` is no sign of work either;
 * - how the answer ended, with the last text, and then as `rest` the event without it;
 * - `sdk`: more than we read; the SDK has to, though text may still go past it;
 * - `mixed`: the same, but from there on the SDK reads the text too, so that nothing changes its order;
 * - `strange`: in no form that we know of this provider, for the SDK to read all the same;
 * - an error of the provider's.
 */
export type Kind =
  | Plain
  | "quiet"
  | "beside"
  | (Plain & { ending: Ending; rest?: string })
  | "sdk"
  | "mixed"
  | "strange"
  | { error: unknown };

export type Json = Record<string, unknown>;
export type Wire = (event: Json) => Kind;

export const isObject = (value: unknown): value is Json => typeof value === "object" && value !== null;

export const isNothing = (value: unknown): boolean =>
  value === undefined || value === null || value === "" || (Array.isArray(value) && value.length === 0);

/** Whether an object holds nothing but what these names say. */
export const hasOnly = (object: Json, first: string, second: string): boolean => {
  for (const name in object) if (name !== first && name !== second && !isNothing(object[name])) return false;
  return true;
};

export const countOf = (value: unknown): number =>
  typeof value === "number" && Number.isSafeInteger(value) && value >= 0 ? value : 0;

/** A count in an object that may not be there. */
export const countIn = (object: unknown, name: string): number => (isObject(object) ? countOf(object[name]) : 0);

/** An ending that came without text. */
export const ended = (ending: Ending): Kind => ({ text: "", block: undefined, ending });
