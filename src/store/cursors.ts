import { GatewayError } from "#kit/errors.ts";

/** `next` is the `cursor` of the next page. */
export type Page<T> = { items: T[]; next: string | undefined };

/** A place in a list, as its `next` names it: the ordinal of the last row of a page. */
export const encodeCursor = (ordinal: number): string => `c${ordinal.toString(36)}`;

export const decodeCursor = (cursor: string): number => {
  const ordinal = /^c[0-9a-z]{1,10}$/.test(cursor) ? Number.parseInt(cursor.slice(1), 36) : 0;
  if (ordinal < 1 || encodeCursor(ordinal) !== cursor) {
    throw invalidCursor();
  }
  return ordinal;
};

export const invalidCursor = (): GatewayError =>
  new GatewayError("invalid-params", "`cursor` is not one that this list gave.");
