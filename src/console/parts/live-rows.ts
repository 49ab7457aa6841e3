import { type Signal, useSignal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import { type AnyPush, gathered, hold, liveState, newsWait, onReturn } from "../app/live.ts";
import {
  caughtUp,
  emptyList,
  extended,
  filled,
  hasOlder,
  isAway,
  type LiveList,
  merged,
  movedNewer,
  movedOlder,
  PAGE,
  pageBehind,
  released,
} from "../lib/live-list.ts";

/** The most that the gateway gives at once. */
const LONGEST_PAGE = 500;
/** So many of the longest pages are looked through for the end of what is shown. */
const MOST_LOOKED = 10;

type Page<Item> = { items: readonly Item[]; cursor: string | null };

type LiveRowsOf<Item> = {
  keyOf: (item: Item) => string;
  /** A page of them, newest first. */
  read: (page: { limit: number; cursor?: string }, signal: AbortSignal) => Promise<Page<Item>>;
  /** The subscription that brings changes. */
  request: Parameters<typeof hold>[0];
  /** The item that a push brings; undefined where it brings none, or none that the filters let through. `isShown` knows the keys of the list. */
  itemOf: (push: AnyPush, isShown: (key: string) => boolean) => Item | undefined;
  /** The list's filters: when one of them changes, the list is read anew. */
  keys: readonly unknown[];
  /** Something is selected: nothing may move. */
  isReading: boolean;
};

export type LiveRows<Item> = {
  list: Signal<LiveList<Item>>;
  error: Signal<unknown>;
  isLoading: Signal<boolean>;
  /** When it was read last. */
  at: Signal<number | undefined>;
  reload: () => Promise<void>;
  /** Reads the newest page, and keeps the rest. */
  catchUp: () => Promise<void>;
  /** Shows a page of older ones, or of newer ones. False where there are none. */
  move: (to: "older" | "newer") => boolean;
  /** Shows the newest: those that wait come in. */
  release: () => void;
  /** Called just before the shown rows move, by whoever keeps the reader's place. */
  beforeMove: { current: (() => void) | undefined };
};

/**
 * A list that follows what happens: pages by REST, news by pushes, and read anew after each loss of the stream. Few rows are shown at once
 * (`lib/live-list.ts`).
 */
export function useLiveRows<Item>(of: LiveRowsOf<Item>): LiveRows<Item> {
  const list = useSignal<LiveList<Item>>(emptyList());
  const error = useSignal<unknown>(undefined);
  const isLoading = useSignal(true);
  const at = useSignal<number | undefined>(undefined);
  const cursor = useRef<string | null>(null);
  const running = useRef(new Set<AbortController>());
  /** The reader came to the end of the list while its newest page was read. */
  const isOlderWanted = useRef(false);
  const beforeMove = useRef<() => void>(undefined);
  const latest = useRef(of);
  latest.current = of;

  const isShown = (key: string) => list.peek().items.some((item) => latest.current.keyOf(item) === key);
  const isReading = () => latest.current.isReading || scrollY > 80;

  const begin = (page: Page<Item>) => {
    cursor.current = page.cursor;
    list.value = filled(page.items, page.cursor !== null);
  };
  const read = async (signal: AbortSignal, limit: number, from: string | null): Promise<Page<Item>> => {
    const page = await latest.current.read({ limit, ...(from !== null && { cursor: from }) }, signal);
    signal.throwIfAborted();
    return page;
  };
  const modes = {
    anew: async (signal: AbortSignal) => begin(await read(signal, PAGE, null)),
    async "catch-up"(signal: AbortSignal) {
      const page = await read(signal, PAGE, null);
      const { keyOf } = latest.current;
      const next = caughtUp(list.peek(), page.items, { keyOf, isReading: isReading() });
      if (next) list.value = next;
      else begin(page);
    },
    async older(signal: AbortSignal) {
      const page = await readOlder(signal);
      if (!page) return modes.anew(signal);
      beforeMove.current?.();
      cursor.current = page.cursor;
      list.value = extended(list.peek(), page.items, page.cursor !== null, latest.current.keyOf);
    },
  };
  const readOlder = async (signal: AbortSignal): Promise<Page<Item> | undefined> => {
    const { keyOf } = latest.current;
    if (!list.peek().isTrimmed) return read(signal, PAGE, cursor.current);
    // The last page's cursor does not adjoin any more: the end of what is shown is looked for from the newest on.
    let next: string | null = null;
    for (let n = 0; n < MOST_LOOKED; n++) {
      const page: Page<Item> = await read(signal, LONGEST_PAGE, next);
      const items = pageBehind(list.peek(), page.items, keyOf);
      if (items && (items.length > 0 || page.cursor === null)) return { items, cursor: page.cursor };
      if (items) return read(signal, PAGE, page.cursor);
      if (page.cursor === null) return undefined;
      next = page.cursor;
    }
    return undefined;
  };
  const abortAll = () => {
    for (const one of running.current) one.abort();
    running.current.clear();
  };
  const load = async (mode: keyof typeof modes): Promise<void> => {
    if (mode !== "catch-up") abortAll();
    const own = new AbortController();
    running.current.add(own);
    isLoading.value = true;
    try {
      await modes[mode](own.signal);
      error.value = undefined;
      at.value = Date.now();
    } catch (thrown) {
      if (!own.signal.aborted) error.value = thrown;
    } finally {
      if (running.current.delete(own) && running.current.size === 0) {
        isLoading.value = false;
        const goesOn = mode === "catch-up" && isOlderWanted.current && error.peek() === undefined;
        isOlderWanted.current = false;
        if (goesOn && hasOlder(list.peek())) void load("older");
      }
    }
  };

  useEffect(() => {
    list.value = emptyList();
    void load("anew");
    return abortAll;
  }, of.keys);
  useEffect(() => {
    const stopSign = list.subscribe((now) => {
      newsWait.value = now.waiting.length > 0;
    });
    return () => {
      stopSign();
      newsWait.value = false;
    };
  }, []);
  useEffect(() => {
    const letGo = hold(latest.current.request);
    const stop = gathered(
      (push) => latest.current.itemOf(push, isShown) !== undefined,
      (pushes) => {
        // Whoever comes back to the top, where some are missing, is live again.
        if (list.peek().isCut && list.peek().newer.length === 0 && !isReading() && !isLoading.peek())
          return void load("anew");
        const { itemOf, keyOf } = latest.current;
        const news = pushes.flatMap((push) => itemOf(push, isShown) ?? []).reverse();
        list.value = merged(list.peek(), news, { keyOf, isReading: isReading() });
      },
    );
    const poll = () => {
      if (!document.hidden && liveState.peek() !== "off") void load("catch-up");
    };
    document.addEventListener("visibilitychange", poll);
    const unsubscribe = onReturn(() => void load("catch-up"));
    return () => {
      letGo();
      stop();
      unsubscribe();
      document.removeEventListener("visibilitychange", poll);
    };
  }, []);

  return {
    list,
    error,
    isLoading,
    at,
    beforeMove,
    reload: () => load("anew"),
    catchUp: () => load("catch-up"),
    move(to) {
      const now = list.peek();
      if (to === "older" ? !hasOlder(now) : now.newer.length === 0) return false;
      if (to === "older" && now.older.length === 0) {
        if (isLoading.peek()) isOlderWanted.current = true;
        else void load("older");
        return true;
      }
      beforeMove.current?.();
      list.value = to === "older" ? movedOlder(now) : movedNewer(now);
      return true;
    },
    release() {
      const toTop = () => scrollTo({ top: 0, behavior: "instant" });
      // Not before the newest are there: at the top of older ones the list would go newer by a page.
      if (isAway(list.peek())) return void load("anew").then(toTop);
      list.value = released(list.peek());
      toTop();
    },
  };
}
