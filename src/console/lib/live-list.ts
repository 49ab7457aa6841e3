/**
 * A list that grows at its top while it is read, and at its end when the reader continues. Newest first. Few of its items are shown; older and newer
 * ones replace the shown ones.
 */
export type LiveList<Item> = {
  /** The shown ones, at most `MOST_SHOWN`. */
  readonly items: readonly Item[];
  /** Read already, and newer than the shown ones. */
  readonly newer: readonly Item[];
  /** Read already, and older than the shown ones. */
  readonly older: readonly Item[];
  /** New ones that wait until the reader wants them, so that nothing moves under their eyes. */
  readonly waiting: readonly Item[];
  /** There are older items than the last one here. */
  readonly hasMore: boolean;
  /** Some are missing between these items and the newest ones: only reading the list again leads there. */
  readonly isCut: boolean;
};

/** A page of a list in the gateway's API. */
export const PAGE = 100;
export const MOST_SHOWN = 200;
/** The maximum number of items on either side of the shown ones. */
export const MOST_ROWS = 2_000;
export const MOST_WAITING = 101;

type Keyed<Item> = (item: Item) => string;

export function emptyList<Item>(): LiveList<Item> {
  return filled<Item>([], false);
}

/** The first page, or the same again after a loss. */
export function filled<Item>(items: readonly Item[], hasMore: boolean): LiveList<Item> {
  return {
    items,
    newer: [],
    older: [],
    waiting: [],
    hasMore,
    isCut: false,
  };
}

/** There is something to show below the shown ones. */
export function hasOlder<Item>({ older, hasMore }: LiveList<Item>): boolean {
  return older.length > 0 || hasMore;
}

/** The newest are not among the shown ones: what happens now waits. */
export function isAway<Item>({ newer, isCut }: LiveList<Item>): boolean {
  return newer.length > 0 || isCut;
}

/** A page of older ones, at the end, which is shown. One that is there already is not doubled. */
export function extended<Item>(
  list: LiveList<Item>,
  page: readonly Item[],
  hasMore: boolean,
  keyOf: Keyed<Item>,
): LiveList<Item> {
  const known = new Set([...list.newer, ...list.items, ...list.older].map(keyOf));
  const older = [...list.older, ...page.filter((item) => !known.has(keyOf(item)))];
  return movedOlder({ ...list, older, hasMore });
}

/** Shows a page of the older ones that were read already; as many of the newest are not shown any more. */
export function movedOlder<Item>(list: LiveList<Item>): LiveList<Item> {
  const items = [...list.items, ...list.older.slice(0, PAGE)];
  const over = Math.max(0, items.length - MOST_SHOWN);
  const newer = [...list.newer, ...items.slice(0, over)];
  return {
    ...list,
    items: items.slice(over),
    older: list.older.slice(PAGE),
    newer: newer.slice(-MOST_ROWS),
    isCut: list.isCut || newer.length > MOST_ROWS,
  };
}

/** Shows a page of the newer ones again; as many of the oldest are not shown any more. */
export function movedNewer<Item>(list: LiveList<Item>): LiveList<Item> {
  const items = [...list.newer.slice(-PAGE), ...list.items];
  return {
    ...list,
    items: items.slice(0, MOST_SHOWN),
    newer: list.newer.slice(0, -PAGE),
    older: [...items.slice(MOST_SHOWN), ...list.older],
  };
}

/**
 * New and changed items, newest first. Items that were read or are waiting change in place; others are added at the top, or wait while the reader is
 * elsewhere.
 */
export function merged<Item>(
  list: LiveList<Item>,
  news: readonly Item[],
  { keyOf, isReading }: { keyOf: Keyed<Item>; isReading: boolean },
): LiveList<Item> {
  if (news.length === 0) return list;
  const latest = new Map<string, Item>();
  for (const item of news) if (!latest.has(keyOf(item))) latest.set(keyOf(item), item);
  const next = changed(list, (item) => {
    const now = latest.get(keyOf(item));
    if (now !== undefined) latest.delete(keyOf(item));
    return now ?? item;
  });
  const waiting = [...latest.values(), ...next.waiting];
  // An empty page has no reader to disturb.
  if ((isReading && list.items.length > 0) || isAway(list))
    return {
      ...next,
      waiting: waiting.slice(0, MOST_WAITING),
      isCut: next.isCut || waiting.length > MOST_WAITING,
    };
  return released({ ...next, waiting });
}

/** The newest page, read after a loss. Undefined if it does not overlap the list and the reader is at the top: the list must be reloaded. */
export function caughtUp<Item>(
  list: LiveList<Item>,
  page: readonly Item[],
  { keyOf, isReading }: { keyOf: Keyed<Item>; isReading: boolean },
): LiveList<Item> | undefined {
  const known = new Set([...list.waiting, ...list.newer, ...list.items].map(keyOf));
  if (page.some((item) => known.has(keyOf(item)))) return merged(list, page, { keyOf, isReading });
  if (!isReading && !isAway(list)) return undefined;
  return { ...list, waiting: page.slice(0, MOST_WAITING), isCut: true };
}

/** Moves the waiting items to the top. A list without the newest items must be reloaded instead. */
export function released<Item>(list: LiveList<Item>): LiveList<Item> {
  if (list.waiting.length === 0) return list;
  const items = [...list.waiting, ...list.items];
  const older = [...items.slice(MOST_SHOWN), ...list.older];
  return {
    ...list,
    items: items.slice(0, MOST_SHOWN),
    waiting: [],
    older: older.slice(0, MOST_ROWS),
    hasMore: list.hasMore || older.length > MOST_ROWS,
  };
}

/** Changes the items, in their places. */
export function changed<Item>(list: LiveList<Item>, change: (item: Item) => Item): LiveList<Item> {
  return {
    ...list,
    items: list.items.map(change),
    newer: list.newer.map(change),
    older: list.older.map(change),
    waiting: list.waiting.map(change),
  };
}

/** Takes items out. */
export function without<Item>(list: LiveList<Item>, isGone: (item: Item) => boolean): LiveList<Item> {
  const keep = (items: readonly Item[]) => items.filter((item) => !isGone(item));
  return {
    ...list,
    items: keep(list.items),
    newer: keep(list.newer),
    older: keep(list.older),
    waiting: keep(list.waiting),
  };
}
