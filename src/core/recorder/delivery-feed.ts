import { setImmediate as nextTick } from "node:timers/promises";
import type { Clock } from "#kit/clock.ts";
import type { Events } from "#observe/events.ts";
import type { DeliveryOutcome, RecordedDelivery, Store } from "#store/store.ts";
import { statusOfDelivery } from "./deliveries.ts";

/** A delivery that was recorded, or whose outcome is another; its `status` is that of its answer wherever this is known. */
export type DeliveryNews = { name: "delivery.recorded" | "delivery.changed"; at: number; delivery: RecordedDelivery };

export type DeliveryFollower = {
  /** Called after every look at the recorder, also when there is nothing new; all followers are given the same array. */
  tell(news: readonly DeliveryNews[]): void;
  /** More was recorded than one look tells: some of it is left out. */
  miss(): void;
};

/** The time from one look at the recorder to the next. */
export const LOOK_MS = 500;
/** Read in one step; other calls run between two of them. */
const PAGE = 25;
/** Pages of one look; deliveries beyond them are left out. */
const MOST_PAGES = 80;
/** Deliveries that were there before anybody followed, and whose changes are told. */
const PAGES_BEFORE = 20;
const MOST_KNOWN = 10_000;
const MOST_OPEN = 10_000;
/** Turns and events that are looked up in one look, and how many of them at once. */
const OPEN_LOOKED_UP = 200;
const AT_ONCE = 20;
/** A transaction of another gateway may end this many looks after one that began later: its delivery comes below known ones. */
const LATE_LOOKS = 2;

/**
 * Tells followers the deliveries of the flight recorder, and their results. It reads the recorder twice a second while somebody
 * follows: so recording costs nothing more, and the records of other gateways on the same store are told alike.
 */
export const createDeliveryFeed = (parts: { store: Store; clock: Clock; events: Pick<Events, "storeFailed"> }) => {
  const { store, clock, events } = parts;
  const followers = new Set<DeliveryFollower>();
  /** Ids, oldest first, with the look that found them. */
  const known = new Map<string, number>();
  /** Deliveries that have not ended, the one that was looked up longest ago first. */
  const open = new Map<string, RecordedDelivery>();
  let look = 0;
  let stopTimer = (): void => {};
  let begun: Promise<void> | undefined;

  const keepOpen = (delivery: RecordedDelivery): void => {
    open.delete(delivery.deliveryId);
    if (!isOpen(delivery.outcome)) return;
    open.set(delivery.deliveryId, delivery);
    if (open.size > MOST_OPEN) forgetOldest(open);
  };
  const keepKnown = (id: string, found: number): void => {
    known.set(id, found);
    if (known.size > MOST_KNOWN) forgetOldest(known);
  };

  const change = (before: RecordedDelivery, outcome: DeliveryOutcome): DeliveryNews[] => {
    const delivery = { ...before, outcome };
    keepOpen(delivery);
    if (before.outcome === outcome) return [];
    return [{ name: "delivery.changed", at: clock.now(), delivery }];
  };

  /** The newest deliveries down to one that was found several looks ago, newest first. */
  const readNewest = async (): Promise<{ found: RecordedDelivery[]; isWhole: boolean }> => {
    const found: RecordedDelivery[] = [];
    let cursor: string | undefined;
    for (let pages = 0; pages < MOST_PAGES; pages++) {
      const { items, next } = await store.listDeliveries({ limit: PAGE, ...(cursor !== undefined && { cursor }) });
      for (const delivery of items) {
        if ((known.get(delivery.deliveryId) ?? look) <= look - LATE_LOOKS) return { found, isWhole: true };
        found.push({ ...delivery, status: statusOfDelivery(delivery) });
      }
      if (next === undefined) return { found, isWhole: true };
      cursor = next;
      await nextTick();
    }
    return { found, isWhole: false };
  };

  const takeNewest = (found: readonly RecordedDelivery[], isWhole: boolean): DeliveryNews[] =>
    [...found].reverse().flatMap((delivery): DeliveryNews[] => {
      const { deliveryId: id, outcome } = delivery;
      if (known.has(id)) {
        const before = open.get(id);
        return before ? change(before, outcome) : [];
      }
      // The next look must not go on below those that were left out.
      keepKnown(id, isWhole ? look : look - LATE_LOOKS);
      keepOpen(delivery);
      return [{ name: "delivery.recorded", at: clock.now(), delivery }];
    });

  /** Looks up the work of some that have not ended. */
  const lookUp = async (skipped: ReadonlySet<string>): Promise<DeliveryNews[]> => {
    const due: RecordedDelivery[] = [];
    for (const [id, delivery] of open) {
      if (due.length === OPEN_LOOKED_UP) break;
      if (!skipped.has(id)) due.push(delivery);
    }
    const news: DeliveryNews[] = [];
    for (let from = 0; from < due.length; from += AT_ONCE) {
      const some = due.slice(from, from + AT_ONCE);
      const outcomes = await Promise.all(some.map((delivery) => outcomeOf(store, delivery)));
      for (const [n, outcome] of outcomes.entries()) news.push(...change(some[n] as RecordedDelivery, outcome));
      await nextTick();
    }
    return news;
  };

  const lookOnce = async (): Promise<void> => {
    look++;
    const { found, isWhole } = await readNewest();
    const news = takeNewest(found, isWhole);
    // Each is told even if what follows fails: it is known from here on.
    if (!isWhole) for (const follower of followers) follower.miss();
    try {
      news.push(...(await lookUp(new Set(found.map(({ deliveryId }) => deliveryId)))));
    } finally {
      for (const follower of followers) follower.tell(news);
    }
  };

  const lookLater = (run: Promise<void>): void => {
    stopTimer = clock.after(LOOK_MS, () => {
      lookOnce()
        .catch((error: unknown) => events.storeFailed({ operation: "listDeliveries", error }))
        .then(() => {
          if (begun === run) lookLater(run);
        });
    });
  };

  /** Deliveries that are there already are known, and not told. */
  const begin = async (): Promise<void> => {
    known.clear();
    open.clear();
    look = 0;
    const pages: RecordedDelivery[][] = [];
    let cursor: string | undefined;
    do {
      const { items, next } = await store.listDeliveries({ limit: PAGE, ...(cursor !== undefined && { cursor }) });
      pages.push(items);
      cursor = next;
    } while (cursor !== undefined && pages.length < PAGES_BEFORE);
    for (const [n, page] of [...pages.entries()].reverse())
      for (const delivery of page.toReversed()) {
        // Below the first page nothing comes late, and nothing further down is read again.
        keepKnown(delivery.deliveryId, n === 0 ? 0 : -LATE_LOOKS);
        keepOpen({ ...delivery, status: statusOfDelivery(delivery) });
      }
  };

  const stop = (): void => {
    stopTimer();
    begun = undefined;
    known.clear();
    open.clear();
  };

  return {
    /** Resolves when what is recorded from now on will be told; the function that it gives ends that. */
    async follow(follower: DeliveryFollower): Promise<() => void> {
      const unfollow = () => {
        if (followers.delete(follower) && followers.size === 0) stop();
      };
      followers.add(follower);
      try {
        if (!begun) {
          const run = begin();
          begun = run;
          run.then(
            () => begun === run && lookLater(run),
            () => {},
          );
        }
        await begun;
      } catch (error) {
        begun = undefined;
        unfollow();
        throw error;
      }
      return unfollow;
    },
    close(): void {
      followers.clear();
      stop();
    },
  };
};

export type DeliveryFeed = ReturnType<typeof createDeliveryFeed>;

const isOpen = (outcome: DeliveryOutcome): boolean => outcome === "queued" || outcome === "running";

const outcomeOf = async (store: Store, { turnId, eventId }: RecordedDelivery): Promise<DeliveryOutcome> => {
  const work = eventId === undefined ? await store.getTurn(turnId ?? "") : await store.getEvent(eventId);
  return work?.status ?? "gone";
};

const forgetOldest = (map: Map<string, unknown>): void => {
  const [oldest] = map.keys();
  if (oldest !== undefined) map.delete(oldest);
};
