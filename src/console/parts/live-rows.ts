import { type Signal, useSignal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import { type AnyPush, gathered, hold, liveState, returns } from "../app/live.ts";
import { emptyList, extended, filled, type LiveList, merged, released } from "../lib/live-list.ts";

type Page<Item> = { items: readonly Item[]; cursor: string | null };

type LiveRowsOf<Item> = {
  keyOf: (item: Item) => string;
  /** A page of them, newest first. */
  read: (cursor: string | undefined, signal: AbortSignal) => Promise<Page<Item>>;
  /** What to subscribe to. */
  request: Parameters<typeof hold>[0];
  /** The item that a push brings; undefined where it brings none, or none that the filters let through. */
  itemOf: (push: AnyPush) => Item | undefined;
  /** What the list is of: when one of these changes, it is read anew. */
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
  more: () => void;
  release: () => void;
};

/** A list that follows what happens: pages by REST, news by pushes, and read anew after each loss of the stream. */
export const useLiveRows = <Item>(of: LiveRowsOf<Item>): LiveRows<Item> => {
  const list = useSignal<LiveList<Item>>(emptyList());
  const error = useSignal<unknown>(undefined);
  const isLoading = useSignal(true);
  const at = useSignal<number | undefined>(undefined);
  const cursor = useRef<string | null>(null);
  const running = useRef<AbortController>(undefined);
  const latest = useRef(of);
  latest.current = of;

  const isReading = () => latest.current.isReading || scrollY > 80;
  const load = async (mode: "anew" | "catch-up" | "older"): Promise<void> => {
    if (mode === "older" && (isLoading.peek() || cursor.current === null)) return;
    if (mode === "anew") running.current?.abort();
    const own = new AbortController();
    running.current = own;
    isLoading.value = true;
    try {
      const { keyOf, read } = latest.current;
      const page = await read(mode === "older" ? (cursor.current ?? undefined) : undefined, own.signal);
      if (own.signal.aborted) return;
      const hasMore = page.cursor !== null;
      if (mode === "older") list.value = extended(list.peek(), page.items, hasMore, keyOf);
      else if (
        mode === "catch-up" &&
        page.items.some((item) => list.peek().items.some((one) => keyOf(one) === keyOf(item)))
      )
        list.value = merged(list.peek(), page.items, { keyOf, isReading: isReading() });
      // What lies between the newest page and what is shown is not known: the list begins anew.
      else list.value = filled(page.items, hasMore);
      if (mode !== "catch-up") cursor.current = page.cursor;
      error.value = undefined;
      at.value = Date.now();
    } catch (thrown) {
      if (!own.signal.aborted) error.value = thrown;
    } finally {
      if (running.current === own) isLoading.value = false;
    }
  };

  useEffect(() => {
    list.value = emptyList();
    void load("anew");
    return () => running.current?.abort();
  }, of.keys);
  useEffect(() => {
    const letGo = hold(latest.current.request);
    const stop = gathered(
      (push) => latest.current.itemOf(push) !== undefined,
      (pushes) => {
        const { itemOf, keyOf } = latest.current;
        const news = pushes.flatMap((push) => itemOf(push) ?? []).reverse();
        list.value = merged(list.peek(), news, { keyOf, isReading: isReading() });
      },
    );
    const look = () => {
      if (!document.hidden && liveState.peek() !== "off") void load("catch-up");
    };
    document.addEventListener("visibilitychange", look);
    const unsubscribe = returns.subscribe((n) => {
      if (n > 0) void load("catch-up");
    });
    return () => {
      letGo();
      stop();
      unsubscribe();
      document.removeEventListener("visibilitychange", look);
    };
  }, []);

  return {
    ...{ list, error, isLoading, at },
    reload: () => load("anew"),
    more: () => void load("older"),
    release: () => {
      list.value = released(list.peek());
    },
  };
};
