/** A list that grows at its top while somebody reads it. Newest first. */
export type LiveList<Item> = {
  readonly items: readonly Item[];
  /** New ones that wait until the reader wants them, so that nothing moves under their eyes. */
  readonly waiting: readonly Item[];
  /** There are older items than the last one here. */
  readonly hasMore: boolean;
};

/** More rows than this are never kept; the oldest are read again when somebody scrolls there. */
export const MOST_ITEMS = 200;
export const MOST_WAITING = 101;

type Keyed<Item> = (item: Item) => string;

export const emptyList = <Item>(): LiveList<Item> => ({ items: [], waiting: [], hasMore: false });

/** The first page, or the same again after a loss. */
export const filled = <Item>(items: readonly Item[], hasMore: boolean): LiveList<Item> => ({
  items,
  waiting: [],
  hasMore,
});

/** A page of older ones, at the end. One that is there already is not doubled. */
export const extended = <Item>(
  list: LiveList<Item>,
  page: readonly Item[],
  hasMore: boolean,
  keyOf: Keyed<Item>,
): LiveList<Item> => {
  const known = new Set(list.items.map(keyOf));
  return { ...list, items: [...list.items, ...page.filter((item) => !known.has(keyOf(item)))], hasMore };
};

/**
 * New and changed items, newest first. What is shown or waits already changes in its place; the rest enters at the top, or waits where
 * the reader is looking at something.
 */
export const merged = <Item>(
  list: LiveList<Item>,
  news: readonly Item[],
  { keyOf, isReading }: { keyOf: Keyed<Item>; isReading: boolean },
): LiveList<Item> => {
  if (news.length === 0) return list;
  const latest = new Map(news.map((item) => [keyOf(item), item]));
  const change = (items: readonly Item[]) =>
    items.map((item) => {
      const next = latest.get(keyOf(item));
      if (next !== undefined) latest.delete(keyOf(item));
      return next ?? item;
    });
  const items = change(list.items);
  const waiting = change(list.waiting);
  const newest = [...latest.values()];
  if (isReading) return { ...list, items, waiting: [...newest, ...waiting].slice(0, MOST_WAITING) };
  return capped({ ...list, items: [...newest, ...waiting, ...items], waiting: [] });
};

/** Takes those that wait in. */
export const released = <Item>(list: LiveList<Item>): LiveList<Item> =>
  list.waiting.length === 0 ? list : capped({ ...list, items: [...list.waiting, ...list.items], waiting: [] });

/** Changes the items that are shown, in their places. */
export const changed = <Item>(list: LiveList<Item>, change: (item: Item) => Item): LiveList<Item> => ({
  ...list,
  items: list.items.map(change),
  waiting: list.waiting.map(change),
});

const capped = <Item>(list: LiveList<Item>): LiveList<Item> =>
  list.items.length <= MOST_ITEMS ? list : { ...list, items: list.items.slice(0, MOST_ITEMS), hasMore: true };
