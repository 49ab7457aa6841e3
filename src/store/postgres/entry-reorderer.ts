import type { Clock } from "#kit/clock.ts";

/** The state of a stream: the last `seq` that watchers were notified of, and entries that were received too early. */
type StreamPosition<E> = { through: number; early: { entries: readonly E[]; elsewhere: boolean }[] };

/** The most streams whose state is kept in memory. */
const MOST_REMEMBERED = 20_000;
/** The time that early entries wait for the missing ones. After this, the missing entries are read from the database. */
const EARLY_MS = 50;
/** The time until a failed read is retried, and the number of entries in one read. */
const AGAIN_MS = 1_000;
const PAGE = 500;
/** If a stream has no state, entries before the received ones are read too: at most this number, and none older than this age. */
const BACKLOG = 64;
const RECENT_MS = 60_000;

type Parts<S, E> = {
  clock: Pick<Clock, "now">;
  read: (stream: S, after: number, limit: number) => Promise<readonly E[]>;
  /** True if other gateways use the database. */
  hasOthers: () => boolean;
  /** True if a watcher here follows the stream. */
  wants: (stream: S) => boolean;
  notify: (stream: S, entries: readonly E[], elsewhere: boolean) => void;
};

/**
 * Notifies the watchers of the entries of streams: of each entry once, in the order of `seq`. Entries of this gateway and of other gateways may
 * be received in any order.
 */
export class EntryReorderer<S extends { ordinal: number }, E extends { seq: number; at: number }> {
  readonly #positions = new Map<number, StreamPosition<E>>();
  readonly #parts: Parts<S, E>;
  #isClosed = false;

  constructor(parts: Parts<S, E>) {
    this.#parts = parts;
  }

  /** Starts a stream. Watchers are not notified of entries up to `through`. */
  begin({ ordinal }: S, through: number): void {
    this.#remember(ordinal, through);
  }

  /** Processes stored entries. `elsewhere`: another gateway wrote them. */
  entries(stream: S, entries: readonly E[], elsewhere = false): void {
    const first = entries[0]?.seq;
    const last = entries.at(-1)?.seq;
    if (first === undefined || last === undefined) return;
    const { hasOthers, wants, clock, notify } = this.#parts;
    const position = this.#positions.get(stream.ordinal);
    if (!position) {
      if (first > 1 && hasOthers() && wants(stream)) {
        const begun = this.#remember(stream.ordinal, Math.max(first - 1 - BACKLOG, 0));
        begun.early.push({ entries, elsewhere });
        void this.#catchUp(stream, begun.through, first - 1, clock.now() - RECENT_MS);
        return;
      }
      this.#remember(stream.ordinal, last);
      notify(stream, entries, elsewhere);
    } else if (first > position.through + 1 && wants(stream)) {
      position.early.push({ entries, elsewhere });
      if (position.early.length === 1)
        setTimeout(() => void this.#catchUp(stream, position.through, first - 1), EARLY_MS);
    } else if (last > position.through) {
      const news = entries.filter(({ seq }) => seq > position.through);
      position.through = last;
      notify(stream, news, elsewhere);
      this.#takeEarly(stream, position);
    }
  }

  /** Called if another gateway wrote the entries from `from` to `through`. If a watcher follows the stream, reads them and notifies the watchers. */
  async elsewhere(stream: S, from: number, through: number): Promise<void> {
    const position = this.#positions.get(stream.ordinal);
    if (position && position.through >= through) return;
    const { wants, clock } = this.#parts;
    if (wants(stream)) {
      const after = position?.through ?? Math.max(from - 1 - BACKLOG, 0);
      if (!position) this.#remember(stream.ordinal, after);
      await this.#catchUp(stream, after, through, position ? 0 : clock.now() - RECENT_MS);
    } else if (position) {
      position.through = through;
      this.#takeEarly(stream, position);
    }
  }

  /** Ends a stream. Returns false if it has already ended. */
  end({ ordinal }: S): boolean {
    const isNews = this.#positions.get(ordinal)?.through !== Infinity;
    this.#remember(ordinal, Infinity);
    return isNews;
  }

  /** Stops retrying failed reads. */
  close(): void {
    this.#isClosed = true;
  }

  /** Reads the missing entries up to `through`, and notifies the watchers of those since `since`. */
  async #catchUp(stream: S, after: number, through: number, since = 0): Promise<void> {
    for (let from = after; from < through; ) {
      let read: readonly E[];
      try {
        read = await this.#parts.read(stream, from, Math.min(through - from, PAGE));
      } catch {
        if (!this.#isClosed) setTimeout(() => void this.#catchUp(stream, from, through, since), AGAIN_MS).unref();
        return;
      }
      const position = this.#positions.get(stream.ordinal);
      if (!position || position.through === Infinity) return;
      const entries = read.filter(({ at }) => at >= since);
      const last = read.at(-1)?.seq ?? through;
      const first = entries[0]?.seq ?? last + 1;
      // A deleted or old entry is skipped, so that it does not block the rest.
      if (position.through >= from) position.through = Math.max(position.through, first - 1);
      this.entries(stream, entries, true);
      from = last;
    }
    const position = this.#positions.get(stream.ordinal);
    if (position) this.#takeEarly(stream, position);
  }

  #takeEarly(stream: S, position: StreamPosition<E>): void {
    if (position.early.length === 0) return;
    const early = position.early.splice(0).sort((a, b) => (a.entries[0]?.seq ?? 0) - (b.entries[0]?.seq ?? 0));
    for (const { entries, elsewhere } of early) this.entries(stream, entries, elsewhere);
  }

  #remember(ordinal: number, through: number): StreamPosition<E> {
    const position: StreamPosition<E> = { through, early: [] };
    this.#positions.delete(ordinal);
    this.#positions.set(ordinal, position);
    if (this.#positions.size > MOST_REMEMBERED) {
      for (const oldest of this.#positions.keys()) {
        this.#positions.delete(oldest);
        break;
      }
    }
    return position;
  }
}
