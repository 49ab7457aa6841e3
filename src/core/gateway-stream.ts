import type { Clock } from "#kit/clock.ts";
import type { GatewayEntry, GatewayNews, Store } from "#store/store.ts";

/** How many entries the stream keeps, and for how long. */
export const GATEWAY_STORED_ENTRIES = 10_000;
export const GATEWAY_RETENTION_MS = 24 * 3_600_000;

/** The stream of the gateway's own events, for all followers. */
export function createGatewayStream({ store, clock }: { store: Store; clock: Clock }) {
  const followers = new Set<(entries: readonly GatewayEntry[]) => void>();
  return {
    /** Another text whenever the stream began anew. */
    epoch: store.epoch,
    append: (news: GatewayNews): Promise<GatewayEntry> =>
      store.appendGatewayEntry(news, { now: clock.now(), keep: GATEWAY_STORED_ENTRIES }),
    /** `first` is the oldest entry that is kept (one past `last` when none is), `last` the newest ever (0 before the first). */
    async place(): Promise<{ first: number; last: number }> {
      const { first, last } = await store.readGatewayEntries({ after: 0, limit: 0 });
      return { first, last };
    },
    /** Entries after `after`, in order. */
    async read(after: number, limit: number): Promise<readonly GatewayEntry[]> {
      return (await store.readGatewayEntries({ after, limit })).entries;
    },
    /** Calls `listener` with each new entry once, in order, after it is kept; the returned function ends it. */
    follow(listener: (entries: readonly GatewayEntry[]) => void): () => void {
      followers.add(listener);
      return () => followers.delete(listener);
    },
    isFollowed: (): boolean => followers.size > 0,
    /** The store's watcher calls this. */
    tellFollowers(entries: readonly GatewayEntry[]): void {
      for (const listener of followers) listener(entries);
    },
  };
}

export type GatewayStream = ReturnType<typeof createGatewayStream>;
