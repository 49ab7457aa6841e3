import type { CoreParts } from "#core/parts.ts";
import { sleep } from "#kit/clock.ts";
import { yieldToOthers } from "#kit/yield.ts";
import type { DeliveryOutcome, RecordedDelivery, Store } from "#store/store.ts";
import { type ShownDelivery, showDelivery } from "./deliveries.ts";

/** A delivery that was recorded, or whose outcome is another. */
export type DeliveryNews = { name: "delivery.recorded" | "delivery.changed"; at: number; delivery: ShownDelivery };

export type DeliveryFollower = {
  /** Called after every look at the recorder, also when there is nothing new; all followers are given the same array. */
  tell(news: readonly DeliveryNews[]): void;
  /** More was recorded than one look tells: some of it is left out. */
  miss(): void;
};

/** The time from one look at the recorder to the next. */
const LOOK_MS = 500;
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
export function createDeliveryFeed({ store, clock, events }: Pick<CoreParts, "store" | "clock" | "events">) {
  const followers = new Set<DeliveryFollower>();
  /** Ids, oldest first, with the look that found them. */
  const known = new Map<string, number>();
  /** Deliveries that have not ended, the one that was looked up longest ago first. */
  const open = new Map<string, RecordedDelivery>();
  let look = 0;
  let looking: { begun: Promise<void>; stop: AbortController } | undefined;

  const keepOpen = (delivery: RecordedDelivery): void => {
    open.delete(delivery.deliveryId);
    if (isOpen(delivery.outcome)) keepNewest(open, MOST_OPEN, delivery.deliveryId, delivery);
  };
  const change = (before: RecordedDelivery, outcome: DeliveryOutcome): DeliveryNews[] => {
    const delivery = { ...before, outcome };
    keepOpen(delivery);
    if (before.outcome === outcome) return [];
    return [{ name: "delivery.changed", at: clock.now(), delivery: showDelivery(delivery) }];
  };

  /** The newest deliveries down to one that was found several looks ago, newest first. */
  const readNewest = async (mostPages: number): Promise<{ found: RecordedDelivery[]; isWhole: boolean }> => {
    const found: RecordedDelivery[] = [];
    let cursor: string | undefined;
    for (let pages = 0; pages < mostPages; pages++) {
      const { items, next } = await store.listDeliveries({ limit: PAGE, ...(cursor !== undefined && { cursor }) });
      for (const delivery of items) {
        if ((known.get(delivery.deliveryId) ?? look) <= look - LATE_LOOKS) return { found, isWhole: true };
        found.push(delivery);
      }
      if (next === undefined) return { found, isWhole: true };
      cursor = next;
      await yieldToOthers();
    }
    return { found, isWhole: false };
  };

  /** The news in what a look found, oldest first. */
  const takeNewest = (found: readonly RecordedDelivery[], isWhole: boolean): DeliveryNews[] =>
    [...found.entries()].reverse().flatMap(([n, delivery]): DeliveryNews[] => {
      const { deliveryId: id, outcome } = delivery;
      if (known.has(id)) {
        const before = open.get(id);
        return before ? change(before, outcome) : [];
      }
      // The next look must not go on below those that were left out. Further down than a page nothing comes late.
      keepNewest(known, MOST_KNOWN, id, isWhole || n < PAGE ? look : look - LATE_LOOKS);
      keepOpen(delivery);
      return [{ name: "delivery.recorded", at: clock.now(), delivery: showDelivery(delivery) }];
    });

  /** Looks up the work of some that have not ended. */
  const lookUp = async (skipped: ReadonlySet<string>): Promise<DeliveryNews[]> => {
    const due = [...open.values()].filter(({ deliveryId }) => !skipped.has(deliveryId)).slice(0, OPEN_LOOKED_UP);
    const news: DeliveryNews[] = [];
    while (due.length > 0) {
      const some = due.splice(0, AT_ONCE);
      const outcomes = await Promise.all(some.map((delivery) => outcomeOf(store, delivery)));
      news.push(...some.flatMap((delivery, n) => change(delivery, outcomes[n] as DeliveryOutcome)));
      await yieldToOthers();
    }
    return news;
  };

  const lookOnce = async (): Promise<void> => {
    look++;
    const { found, isWhole } = await readNewest(MOST_PAGES);
    const news = takeNewest(found, isWhole);
    // Each is told even if what follows fails: it is known from here on.
    if (!isWhole) for (const follower of followers) follower.miss();
    try {
      news.push(...(await lookUp(new Set(found.map(({ deliveryId }) => deliveryId)))));
    } finally {
      for (const follower of followers) follower.tell(news);
    }
  };

  /** Deliveries that are there already are known, and not told. Then it looks again and again until `signal` aborts. */
  const begin = async (signal: AbortSignal): Promise<void> => {
    known.clear();
    open.clear();
    look = 0;
    const { found, isWhole } = await readNewest(PAGES_BEFORE);
    if (signal.aborted) return;
    takeNewest(found, isWhole);
    void lookOn(signal);
  };
  const lookOn = async (signal: AbortSignal): Promise<void> => {
    for (;;) {
      await sleep(clock, LOOK_MS, signal);
      if (signal.aborted) return;
      await lookOnce().catch((error: unknown) => events.storeFailed({ operation: "listDeliveries", error }));
    }
  };
  const stop = (): void => {
    looking?.stop.abort();
    looking = undefined;
  };

  return {
    /** Resolves when what is recorded from now on will be told; the function that it gives ends that. */
    async follow(follower: DeliveryFollower): Promise<() => void> {
      const unfollow = () => {
        if (followers.delete(follower) && followers.size === 0) stop();
      };
      followers.add(follower);
      if (!looking) {
        const stop = new AbortController();
        looking = { begun: begin(stop.signal), stop };
      }
      const mine = looking;
      try {
        await mine.begun;
      } catch (error) {
        if (looking === mine) stop();
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
}

export type DeliveryFeed = ReturnType<typeof createDeliveryFeed>;

function isOpen(outcome: DeliveryOutcome): boolean {
  return outcome === "queued" || outcome === "running";
}

async function outcomeOf(store: Store, { turnId, eventId }: RecordedDelivery): Promise<DeliveryOutcome> {
  const work = eventId === undefined ? await store.getTurn(turnId ?? "") : await store.getEvent(eventId);
  return work?.status ?? "gone";
}

/** Adds a value, and forgets the oldest where there are too many. */
function keepNewest<T>(map: Map<string, T>, most: number, key: string, value: T): void {
  map.set(key, value);
  const [oldest] = map.keys();
  if (map.size > most && oldest !== undefined) map.delete(oldest);
}
