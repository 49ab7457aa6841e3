import type { Clock } from "#kit/clock.ts";

/** The memory of a stream: the `seq` up to which was told, and entries that came too early. */
type StreamPosition<E> = { through: number; early: { entries: readonly E[]; elsewhere: boolean }[] };

/** Streams of which it is remembered how far they were told. */
const MOST_REMEMBERED = 20_000;
/** The time that entries wait for earlier ones, until the earlier ones are read. */
const EARLY_MS = 50;
/** The time until a failed read is tried again, and the number of entries that are read at a time. */
const AGAIN_MS = 1_000;
const PAGE = 500;
/**
 * If nothing is remembered of a stream, others may have written to it just now: the number and the age of the entries to read.
 */
const LOOK_BACK = 64;
const LATELY_MS = 60_000;

type Parts<S, E> = {
  clock: Pick<Clock, "now">;
  read: (stream: S, after: number, limit: number) => Promise<readonly E[]>;
  /** Other gateways are there. */
  hasOthers: () => boolean;
  /** Somebody follows the stream here. */
  wants: (stream: S) => boolean;
  tell: (stream: S, entries: readonly E[], elsewhere: boolean) => void;
};

/**
 * Tells the watchers here of the entries of streams, each once and in the order of `seq`: news of the entries of
 * other gateways may come sooner or later than those of this one.
 */
export class EntryReorderer<S extends { ordinal: number }, E extends { seq: number; at: number }> {
  readonly #told = new Map<number, StreamPosition<E>>();
  readonly #parts: Parts<S, E>;
  #isClosed = false;

  constructor(parts: Parts<S, E>) {
    this.#parts = parts;
  }

  /** Nobody here has missed the earlier entries. */
  begin({ ordinal }: S, through: number): void {
    this.#remember(ordinal, through);
  }

  /** Entries that are kept. */
  entries(stream: S, entries: readonly E[], elsewhere = false): void {
    const first = entries[0]?.seq;
    const last = entries.at(-1)?.seq;
    if (first === undefined || last === undefined) return;
    const { hasOthers, wants, clock, tell } = this.#parts;
    const told = this.#told.get(stream.ordinal);
    if (!told) {
      if (first > 1 && hasOthers() && wants(stream)) {
        const begun = this.#remember(stream.ordinal, Math.max(first - 1 - LOOK_BACK, 0));
        begun.early.push({ entries, elsewhere });
        void this.#catchUp(stream, begun.through, first - 1, clock.now() - LATELY_MS);
        return;
      }
      this.#remember(stream.ordinal, last);
      tell(stream, entries, elsewhere);
    } else if (first > told.through + 1 && wants(stream)) {
      told.early.push({ entries, elsewhere });
      if (told.early.length === 1) setTimeout(() => void this.#catchUp(stream, told.through, first - 1), EARLY_MS);
    } else if (last > told.through) {
      const news = entries.filter(({ seq }) => seq > told.through);
      told.through = last;
      tell(stream, news, elsewhere);
      this.#takeEarly(stream, told);
    }
  }

  /** Another gateway wrote these. A watcher that wants them is told once they are read. */
  async elsewhere(stream: S, from: number, through: number): Promise<void> {
    const told = this.#told.get(stream.ordinal);
    if (told && told.through >= through) return;
    const { wants, clock } = this.#parts;
    if (wants(stream)) {
      const after = told?.through ?? Math.max(from - 1 - LOOK_BACK, 0);
      if (!told) this.#remember(stream.ordinal, after);
      await this.#catchUp(stream, after, through, told ? 0 : clock.now() - LATELY_MS);
    } else if (told) {
      told.through = through;
      this.#takeEarly(stream, told);
    }
  }

  /** The stream is over; answers whether that is news. */
  end({ ordinal }: S): boolean {
    const isNews = this.#told.get(ordinal)?.through !== Infinity;
    this.#remember(ordinal, Infinity);
    return isNews;
  }

  /** Tells no more. */
  close(): void {
    this.#isClosed = true;
  }

  /** Reads the entries that were not told, up to `through`, and tells the ones that came after `since`. */
  async #catchUp(stream: S, after: number, through: number, since = 0): Promise<void> {
    for (let from = after; from < through; ) {
      let read: readonly E[];
      try {
        read = await this.#parts.read(stream, from, Math.min(through - from, PAGE));
      } catch {
        if (!this.#isClosed) setTimeout(() => void this.#catchUp(stream, from, through, since), AGAIN_MS).unref();
        return;
      }
      const told = this.#told.get(stream.ordinal);
      if (!told || told.through === Infinity) return;
      const entries = read.filter(({ at }) => at >= since);
      const last = read.at(-1)?.seq ?? through;
      const first = entries[0]?.seq ?? last + 1;
      // An entry that is not there any more, or is old, is not told: it must not hold up the rest.
      if (told.through >= from) told.through = Math.max(told.through, first - 1);
      this.entries(stream, entries, true);
      from = last;
    }
    const told = this.#told.get(stream.ordinal);
    if (told) this.#takeEarly(stream, told);
  }

  #takeEarly(stream: S, told: StreamPosition<E>): void {
    if (told.early.length === 0) return;
    const early = told.early.splice(0).sort((a, b) => (a.entries[0]?.seq ?? 0) - (b.entries[0]?.seq ?? 0));
    for (const { entries, elsewhere } of early) this.entries(stream, entries, elsewhere);
  }

  #remember(ordinal: number, through: number): StreamPosition<E> {
    const told: StreamPosition<E> = { through, early: [] };
    this.#told.delete(ordinal);
    this.#told.set(ordinal, told);
    if (this.#told.size > MOST_REMEMBERED) {
      for (const oldest of this.#told.keys()) {
        this.#told.delete(oldest);
        break;
      }
    }
    return told;
  }
}
