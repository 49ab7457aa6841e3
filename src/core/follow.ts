/** Streams number their entries from 1 on, without gaps. The first entries of a stream may be erased later. */
export type StreamEntry = { readonly seq: number };

/** The receiver of the entries of a follower. */
export interface Taker<E> {
  /** True if the taker has no room for new entries. They are read from the store later. */
  readonly isFull: boolean;
  /** True if the taker has room for stored entries. */
  readonly hasRoom: boolean;
  /** False for an entry that is skipped. It needs no room. */
  wants(entry: E): boolean;
  take(entry: E): void;
  /** Called before the next entry if earlier ones are missing: the stream continues after `before`. */
  onGap(before: number): void;
  /** Called when backfill starts. The taker must call its follower's `page` until that returns false. */
  onBackfill(): void;
}

/** A stream of entries and its followers. */
export abstract class Stream<E extends StreamEntry, T extends Taker<E> = Taker<E>> {
  readonly followers = new Set<Follower<E, T>>();

  /** Adds a follower, which has not started yet. */
  follow(taker: T): Follower<E, T> {
    const follower = new Follower(this, taker);
    this.followers.add(follower);
    return follower;
  }

  /** Reads at most `limit` entries after the entry `after`. */
  abstract read(after: number, limit: number): Promise<readonly E[]>;

  /** Called when a follower has reached the current end of the stream. */
  onCaughtUp(_follower: Follower<E, T>): void {}

  /** Called when the last follower has left. */
  onAbandoned(): void {}

  /** Passes on new entries. Called within the store's notification, with each entry once and in the order of `seq`. */
  publish(entries: readonly E[]): void {
    for (const entry of entries) {
      for (const follower of this.followers) follower.notify(entry);
      this.published(entry);
    }
  }

  protected published(_entry: E): void {}
}

/** The place of a follower that starts with the next entry. */
const NEXT = -1;

/**
 * Follows a stream from a place on. The taker gets each entry after the place once and in the order of `seq`, until the follower leaves.
 * - backfill: stored entries are read page by page, and only when the taker asks for a page. New entries are not held in memory meanwhile.
 * - live: a new entry is passed on within the store's notification, without a read or a promise.
 * - The follower goes from backfill to live in `page`, when no read is under way and no newer entry was published.
 * - A full taker ends live: the follower is in backfill again, so that its memory does not depend on how far it is behind.
 * - After `leave` the taker is not called, not even by a read that was under way. A failed read changes nothing.
 */
export class Follower<E extends StreamEntry, T extends Taker<E> = Taker<E>> {
  readonly stream: Stream<E, T>;
  readonly taker: T;
  /** `idle`: the follower has not started, and only `newest` is updated. */
  phase: "idle" | "backfill" | "live" | "closed" = "idle";
  /** The `seq` of the last entry that was taken or skipped. */
  seq = 0;
  /** The `seq` of the newest entry that was published. */
  newest = 0;

  constructor(stream: Stream<E, T>, taker: T) {
    this.stream = stream;
    this.taker = taker;
  }

  /** Starts after the entry `from`, in backfill. */
  start(from: number): void {
    this.seq = from;
    this.#startBackfill();
  }

  /** Starts live: with the next published entry, or after the entry `from`, if no entry after `from` was published yet. */
  startLive(from = NEXT): void {
    this.seq = from;
    this.phase = "live";
  }

  /** True if the follower will reach the entry `seq`: it has neither been passed on nor skipped. */
  isBefore(seq: number): boolean {
    return this.seq !== NEXT && this.seq < seq;
  }

  notify(entry: E): void {
    this.newest = entry.seq;
    if (this.phase !== "live") return;
    if (this.seq === NEXT) this.seq = entry.seq - 1;
    if (entry.seq <= this.seq) return;
    const isWanted = this.taker.wants(entry);
    if (entry.seq > this.seq + 1 || (isWanted && this.taker.isFull)) this.#startBackfill();
    else this.#pass(entry, isWanted);
  }

  /** Passes on a page of stored entries while there is room. Returns true if there are more. The taker then calls `page` again, after the pages of other followers. */
  async page(limit: number): Promise<boolean> {
    const { seq: from, newest, stream, taker } = this;
    if (!this.#isInBackfill) return false;
    const page = await stream.read(from, limit);
    // The follower has left or was restarted at another place during the read.
    if (!this.#isInBackfill || this.seq !== from) return this.#isInBackfill;
    const before = (page[0]?.seq ?? 0) - 1;
    if (before > from) {
      this.seq = before;
      taker.onGap(before);
    }
    for (const entry of page) {
      const isWanted = taker.wants(entry);
      if (isWanted && !taker.hasRoom) return true;
      this.#pass(entry, isWanted);
      if (!this.#isInBackfill) return false;
    }
    // An entry may be published before it can be read: an empty page is read again only if there are newer entries.
    const hasNewer = this.newest > this.seq && (page.length > 0 || this.newest !== newest);
    if (page.length === limit || hasNewer) return true;
    this.phase = "live";
    stream.onCaughtUp(this);
    return false;
  }

  leave(): void {
    this.phase = "closed";
    const { stream } = this;
    if (stream.followers.delete(this) && stream.followers.size === 0) stream.onAbandoned();
  }

  get #isInBackfill(): boolean {
    return this.phase === "backfill";
  }

  #startBackfill(): void {
    this.phase = "backfill";
    this.taker.onBackfill();
  }

  #pass(entry: E, isWanted: boolean): void {
    this.seq = entry.seq;
    if (isWanted) this.taker.take(entry);
  }
}
