import { setImmediate as nextTurn } from "node:timers/promises";
import { decodeCursor, encodeCursor } from "#store/cursors.ts";
import type { Page } from "#store/store.ts";
import { NO_SLOT } from "./record-segments.ts";
import type { SlotOrder } from "./slot-order.ts";

/** How much is looked at before others run, in microseconds or so. */
const SLICE = 1_000;
/** So many bytes are decoded in one of them. */
const BYTES_A_STEP = 1_024;
/** A page ends when it holds so many: it goes out as one answer. */
const PAGE_BYTES = 1024 * 1024;

/** A list of which a page is asked for. */
type Listing<T> = {
  order: Pick<SlotOrder, "last" | "before" | "slotOf">;
  limit: number;
  cursor: string | undefined;
  matches: (slot: number) => boolean;
  /** How large the record is that `read` decodes. */
  lengthOf: (slot: number) => number;
  read: (slot: number) => T;
};

/** A page of records that match, newest first. Where few of very many do, it lets others run meanwhile. */
export const scanBack = async <T>(listing: Listing<T>): Promise<Page<T>> => {
  const { order, limit, cursor, matches, lengthOf, read } = listing;
  const items: T[] = [];
  let lastRead = 0;
  let left = SLICE;
  let bytes = 0;
  for (let at = cursor === undefined ? order.last : decodeCursor(cursor) - 1; limit > 0; at--) {
    at = order.before(at);
    if (at === 0) break;
    if (left-- <= 0) {
      await nextTurn();
      left = SLICE;
    }
    // It may have gone meanwhile.
    const slot = order.slotOf(at);
    if (slot === NO_SLOT || !matches(slot)) continue;
    if (items.length === limit || bytes >= PAGE_BYTES) return { items, next: encodeCursor(lastRead) };
    items.push(read(slot));
    bytes += lengthOf(slot);
    left -= 1 + lengthOf(slot) / BYTES_A_STEP;
    lastRead = at;
  }
  return { items, next: undefined };
};
