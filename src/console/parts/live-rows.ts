import { signal } from "@preact/signals";
import { useEffect, useMemo, useRef } from "preact/hooks";
import { type AnyPush, gathered, hold, liveState, newsWait, onReturn, whenHeld } from "../app/live.ts";
import {
  caughtUp,
  emptyList,
  extended,
  filled,
  hasOlder,
  isAway,
  type LiveList,
  MOST_ROWS,
  merged,
  movedNewer,
  movedOlder,
  PAGE,
  released,
} from "../lib/live-list.ts";

type Page<Item> = { items: readonly Item[]; cursor: string | null };

type LiveRowsOf<Item> = {
  keyOf: (item: Item) => string;
  /** Reads a page of items, newest first: after a cursor or, with `isKeyset`, after the item with the key `before`. Such keys grow with time. */
  read: (page: { limit: number; cursor?: string; before?: string }, signal: AbortSignal) => Promise<Page<Item>>;
  isKeyset?: true;
  /** The subscription that brings changes. */
  request: Parameters<typeof hold>[0];
  /** The item of a push; undefined if it has none, or one that the filters exclude. `isShown` knows the keys of the list. */
  itemOf: (push: AnyPush, isShown: (key: string) => boolean) => Item | undefined;
  /** The list's filters: when one of them changes, the list is read again. */
  keys: readonly unknown[];
  /** Something is selected: nothing may move. */
  isReading: boolean;
};

/** Reloads all rows, merges the newest page into the current rows, or adds a page of older rows. */
type Mode = "again" | "catch-up" | "older";

/** The list of a page, and the ways to read it. */
export class LiveRows<Item> {
  readonly list = signal<LiveList<Item>>(emptyList());
  readonly error = signal<unknown>(undefined);
  readonly isLoading = signal(true);
  /** When it was read last. */
  readonly at = signal<number | undefined>(undefined);
  /** Called just before the shown rows move, by the part that preserves the reader's position. */
  readonly beforeMove: { current: (() => void) | undefined } = { current: undefined };
  /** The options of the last rendering of the page. */
  of: LiveRowsOf<Item>;
  /** The cursor of the last page, and the key of its last item. */
  #cursor: string | null = null;
  #cursorKey: string | undefined;
  /** The running reads, earliest first. `news`: the changes since the start of the read, newest first; its page may lack them. */
  readonly #running = new Map<AbortController, { mode: Mode; news: readonly Item[] }>();
  /** True if the reader reached the end of the list while its newest page was being read. */
  #isOlderWanted = false;

  constructor(of: LiveRowsOf<Item>) {
    this.of = of;
  }

  readonly reload = (): Promise<void> => this.#load("again");
  /** Reads the newest page, and leaves the rest. */
  readonly catchUp = (): Promise<void> => this.#load("catch-up");

  /** Shows a page of older or newer rows. False if there are none. */
  readonly move = (to: "older" | "newer"): boolean => {
    const now = this.list.peek();
    if (to === "older" ? !hasOlder(now) : now.newer.length === 0) return false;
    if (to === "older" && now.older.length === 0) {
      if (this.isLoading.peek()) this.#isOlderWanted = true;
      else void this.#load("older");
      return true;
    }
    this.beforeMove.current?.();
    this.list.value = to === "older" ? movedOlder(now) : movedNewer(now);
    return true;
  };

  /** Shows the newest rows, including the waiting ones. */
  readonly release = (): void => {
    const toTop = () => scrollTo({ top: 0, behavior: "instant" });
    // Scrolls only after the newest rows are loaded: at the top of older rows, the list would move to the next newer page.
    if (isAway(this.list.peek())) return void this.reload().then(toTop);
    this.list.value = released(this.list.peek());
    toTop();
  };

  readonly isShown = (key: string): boolean => this.list.peek().items.some((item) => this.of.keyOf(item) === key);

  /** Takes changes that were pushed, the oldest first. */
  readonly add = (pushes: readonly AnyPush[]): void => {
    const { keyOf, itemOf } = this.of;
    const { isCut, newer } = this.list.peek();
    // Rows are missing, and the reader is back at the top: the list is read again.
    if (isCut && newer.length === 0 && !this.#isReading && !this.isLoading.peek()) return void this.reload();
    const news = pushes
      .flatMap((push) => itemOf(push, this.isShown) ?? [])
      .filter(this.#isInReach)
      .reverse();
    for (const read of this.#running.values()) read.news = [...news, ...read.news].slice(0, MOST_ROWS);
    this.list.value = merged(this.list.peek(), news, { keyOf, isReading: this.#isReading });
  };

  readonly abortAll = (): void => {
    for (const one of this.#running.keys()) one.abort();
    this.#running.clear();
  };

  /** False for a change of an item older than the loaded rows: a later page contains it in its position. */
  readonly #isInReach = (item: Item): boolean => {
    const { items, older, hasMore } = this.list.peek();
    const last = older.at(-1) ?? items.at(-1);
    return !this.of.isKeyset || !hasMore || last === undefined || this.of.keyOf(item) >= this.of.keyOf(last);
  };

  get #isReading(): boolean {
    return this.of.isReading || scrollY > 80;
  }

  async #load(mode: Mode): Promise<void> {
    if (mode !== "catch-up") this.abortAll();
    const own = new AbortController();
    this.#running.set(own, { mode, news: [] });
    this.isLoading.value = true;
    try {
      if (mode === "older") await this.#readOlder(own);
      else await this.#readNewest(own, mode === "catch-up");
      this.error.value = undefined;
      this.at.value = Date.now();
    } catch (thrown) {
      if (!own.signal.aborted) this.error.value = thrown;
    } finally {
      if (this.#running.delete(own) && this.#running.size === 0) {
        this.isLoading.value = false;
        const continues = mode === "catch-up" && this.#isOlderWanted && this.error.peek() === undefined;
        this.#isOlderWanted = false;
        if (continues && hasOlder(this.list.peek())) void this.#load("older");
      }
    }
  }

  async #readNewest(own: AbortController, isKept: boolean): Promise<void> {
    const page = await this.#read(own.signal, {});
    this.#endEarlier(own);
    const how = { keyOf: this.of.keyOf, isReading: this.#isReading };
    const kept = isKept && this.list.peek().items.length > 0 ? caughtUp(this.list.peek(), page.items, how) : undefined;
    if (!kept) this.#setCursor(page);
    const list = kept ?? filled(page.items, page.cursor !== null);
    this.list.value = merged(list, this.#running.get(own)?.news ?? [], how);
  }

  /** Ends the reads that began before this one, as their pages are older than its page. */
  #endEarlier(own: AbortController): void {
    for (const [read, { mode }] of this.#running) {
      if (read === own) return;
      read.abort();
      this.#running.delete(read);
      this.#isOlderWanted ||= mode === "older";
    }
  }

  async #readOlder(own: AbortController): Promise<void> {
    const { keyOf, isKeyset } = this.of;
    const last = this.list.peek().items.at(-1);
    const key = last === undefined ? undefined : keyOf(last);
    // The items behind the last one were dropped, and the cursor would leave a gap.
    if (!isKeyset && key !== this.#cursorKey) return this.#readNewest(own, false);
    const place = isKeyset ? { ...(key !== undefined && { before: key }) } : { cursor: this.#cursor ?? "" };
    const page = await this.#read(own.signal, place);
    this.beforeMove.current?.();
    this.#setCursor(page);
    this.list.value = extended(this.list.peek(), page.items, page.cursor !== null, keyOf);
  }

  #setCursor({ items, cursor }: Page<Item>): void {
    const last = items.at(-1);
    this.#cursor = cursor;
    this.#cursorKey = last === undefined ? this.#cursorKey : this.of.keyOf(last);
  }

  async #read(signal: AbortSignal, place: { cursor?: string; before?: string }): Promise<Page<Item>> {
    let page = await this.of.read({ limit: PAGE, ...place }, signal);
    // With filters that few match, an empty page may not be the last one.
    while (!signal.aborted && page.items.length === 0 && page.cursor !== null)
      page = await this.of.read({ limit: PAGE, cursor: page.cursor }, signal);
    signal.throwIfAborted();
    return page;
  }
}

/**
 * A list that follows what happens: pages by REST, news by pushes, and read again after each loss of the stream. Few rows are shown at once
 * (`lib/live-list.ts`).
 */
export function useLiveRows<Item>(of: LiveRowsOf<Item>): LiveRows<Item> {
  const rows = useMemo(() => new LiveRows(of), []);
  rows.of = of;
  const isRead = useRef(false);
  useEffect(() => {
    const stopSign = rows.list.subscribe((now) => {
      newsWait.value = now.waiting.length > 0;
    });
    return () => {
      stopSign();
      newsWait.value = false;
    };
  }, []);
  useEffect(() => {
    const catchUpIfSeen = () => {
      if (!document.hidden && liveState.peek() !== "off") void rows.catchUp();
    };
    const ends = [
      hold(of.request),
      // Must run before the catch-up: the pushes gathered so far are older than the page that the catch-up reads.
      gathered((push) => rows.of.itemOf(push, rows.isShown) !== undefined, rows.add),
      onReturn(() => isRead.current && void rows.catchUp()),
      () => document.removeEventListener("visibilitychange", catchUpIfSeen),
    ];
    document.addEventListener("visibilitychange", catchUpIfSeen);
    return () => {
      for (const end of ends) end();
    };
  }, []);
  // After the subscription: a page that is read after its start misses nothing.
  useEffect(() => {
    let isLeft = false;
    rows.list.value = emptyList();
    void whenHeld(of.request).then(() => {
      if (isLeft) return;
      isRead.current = true;
      void rows.reload();
    });
    return () => {
      isLeft = true;
      rows.abortAll();
    };
  }, of.keys);
  return rows;
}
