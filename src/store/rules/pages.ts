import { GatewayError } from "#kit/errors.ts";
import type { Page } from "#store/store.ts";
import type { Pieces } from "./records.ts";

/** The number of records that are read at once before other work runs. */
export const RECORDS_A_PIECE = 500;
/** The most records that a page of a list looks at to find those that match. */
export const MOST_SCANNED = 10_000;
/** The bytes at which a page ends: it goes out as one answer. */
const PAGE_BYTES = 1024 * 1024;

/** A list of which a page is asked for. */
type Listing<R, T> = {
  before(place: number, limit: number): R[];
  placeOf(record: R): number;
  /** The item of a record that matches; undefined for another. */
  show(record: R): T | undefined;
  bytesOf(item: T): number;
  limit: number;
  cursor: string | undefined;
  /** The most records that a page looks at. */
  most?: number;
};

/** A page of the records that match, newest first. It may have fewer items than `limit` and, with `most`, none, even if more pages follow. */
export function* scanBack<R, T>(listing: Listing<R, T>): Pieces<Page<T>> {
  const { placeOf, limit, cursor, most = Infinity } = listing;
  const items: T[] = [];
  let last = 0;
  let bytes = 0;
  let scanned = 0;
  for (let place = cursor === undefined ? Infinity : decodeCursor(cursor); limit > 0; ) {
    const records = listing.before(place, RECORDS_A_PIECE);
    for (const record of records) {
      place = placeOf(record);
      const item = listing.show(record);
      if (item === undefined) continue;
      if (items.length === limit || bytes >= PAGE_BYTES) return { items, next: encodeCursor(last) };
      items.push(item);
      bytes += listing.bytesOf(item);
      last = place;
    }
    scanned += records.length;
    if (records.length < RECORDS_A_PIECE) break;
    if (scanned >= most) return { items, next: encodeCursor(place) };
    yield;
  }
  return { items, next: undefined };
}

/** A place in a list, as its `next` names it: the ordinal of the last row of a page. */
export function encodeCursor(ordinal: number): string {
  return `c${ordinal.toString(36)}`;
}

export function decodeCursor(cursor: string): number {
  const ordinal = /^c[0-9a-z]{1,10}$/.test(cursor) ? Number.parseInt(cursor.slice(1), 36) : 0;
  if (ordinal < 1 || encodeCursor(ordinal) !== cursor) {
    throw invalidCursor();
  }
  return ordinal;
}

export function invalidCursor(): GatewayError {
  return new GatewayError("invalid-params", "`cursor` is not a cursor of this list.");
}
