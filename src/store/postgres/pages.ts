import { encodeCursor } from "#store/cursors.ts";
import type { Page } from "#store/store.ts";

/** A page out of rows of which one more than its limit was asked for; `found` is how many there were, where not all of them were read. */
export const pageOf = <R extends { ordinal: number }, T>(
  rows: readonly R[],
  limit: number,
  read: (row: R) => T,
  found = rows.length,
): Page<T> => {
  const kept = rows.slice(0, limit);
  const last = kept.at(-1);
  return { items: kept.map(read), next: last && found > kept.length ? encodeCursor(last.ordinal) : undefined };
};
