import type { Clock } from "#kit/clock.ts";
import type { Entry, SessionRef, StoreWatcher } from "#store/store.ts";

/** What is kept of a session that was told of: the `seq` up to which, and entries that came too early. */
type Told = { through: number; early: { session: SessionRef; entries: readonly Entry[]; elsewhere: boolean }[] };

/** Sessions of which it is remembered how far they were told. */
const MOST_REMEMBERED = 20_000;
/** How long entries wait for those before them, until these are read. */
const EARLY_MS = 50;
/** How long until a read that failed is tried again, and how much is read at a time. */
const AGAIN_MS = 1_000;
const PAGE = 500;
/** Where nothing is remembered of a session, others may have written to it just now: so many entries, so lately, are looked at. */
const LOOK_BACK = 64;
const LATELY_MS = 60_000;

export type TellingsParts = {
  clock: Clock;
  read: (sessionId: string, after: number, limit: number) => Promise<Entry[]>;
  /** Other gateways are there. */
  hasOthers: () => boolean;
};

/**
 * Tells the watchers here of entries, each once and in the order of `seq`, though those that other gateways wrote, or other
 * connections of this one, may be heard of in another.
 */
export class Tellings {
  readonly watchers = new Set<StoreWatcher>();
  readonly #told = new Map<number, Told>();
  readonly #parts: TellingsParts;
  #isClosed = false;

  constructor(parts: TellingsParts) {
    this.#parts = parts;
  }

  /** Entries that are kept. */
  entries(session: SessionRef, entries: readonly Entry[], elsewhere = false): void {
    const first = entries[0]?.seq;
    const last = entries.at(-1)?.seq;
    if (first === undefined || last === undefined) return;
    const told = this.#told.get(session.ordinal);
    if (!told) {
      if (first > 1 && this.#parts.hasOthers() && this.wants(session)) {
        const begun = this.#remember(session.ordinal, Math.max(first - 1 - LOOK_BACK, 0));
        begun.early.push({ session, entries, elsewhere });
        void this.catchUp(session, begun.through, first - 1, this.#parts.clock.now() - LATELY_MS);
        return;
      }
      this.#remember(session.ordinal, last);
      this.#tell(session, entries, elsewhere);
    } else if (first > told.through + 1) {
      told.early.push({ session, entries, elsewhere });
      if (told.early.length === 1) setTimeout(() => void this.catchUp(session, told.through, first - 1), EARLY_MS);
    } else if (last > told.through) {
      const news = entries.filter(({ seq }) => seq > told.through);
      told.through = last;
      this.#tell(session, news, elsewhere);
      this.#takeEarly(told);
    }
  }

  /** Another gateway wrote these. Who wants them is told once they are read. */
  async elsewhere(session: SessionRef, from: number, through: number): Promise<void> {
    const told = this.#told.get(session.ordinal);
    if (told && told.through >= through) return;
    if (this.wants(session)) {
      const after = told?.through ?? Math.max(from - 1 - LOOK_BACK, 0);
      if (!told) this.#remember(session.ordinal, after);
      await this.catchUp(session, after, through, told ? 0 : this.#parts.clock.now() - LATELY_MS);
    } else if (told && told.through + 1 >= from) {
      told.through = through;
      this.#takeEarly(told);
    }
  }

  deleted(session: SessionRef, end: { seq: number; at: number }): void {
    const told = this.#told.get(session.ordinal);
    if (told?.through === Infinity) return;
    this.#remember(session.ordinal, Infinity);
    for (const watcher of this.watchers) watcher.sessionDeleted(session, end);
  }

  wants(session: SessionRef): boolean {
    for (const watcher of this.watchers) if (watcher.wants?.(session)) return true;
    return false;
  }

  /** Tells no more. */
  close(): void {
    this.#isClosed = true;
    this.watchers.clear();
  }

  /** Reads what was not told, up to `through`, and tells what of it came since. */
  async catchUp(session: SessionRef, after: number, through: number, since = 0): Promise<void> {
    for (let from = after; from < through; ) {
      let read: Entry[];
      try {
        read = await this.#parts.read(session.sessionId, from, Math.min(through - from, PAGE));
      } catch {
        if (!this.#isClosed) setTimeout(() => void this.catchUp(session, from, through, since), AGAIN_MS).unref();
        return;
      }
      const told = this.#told.get(session.ordinal);
      if (!told || told.through === Infinity) return;
      const entries = read.filter(({ at }) => at >= since);
      const last = read.at(-1)?.seq ?? through;
      const first = entries[0]?.seq ?? last + 1;
      // What is not there any more, or is old, is not told: it must not hold up the rest.
      if (told.through >= from) told.through = Math.max(told.through, first - 1);
      this.entries(session, entries, true);
      from = last;
    }
    const told = this.#told.get(session.ordinal);
    if (told) this.#takeEarly(told);
  }

  #takeEarly(told: Told): void {
    if (told.early.length === 0) return;
    const early = told.early.splice(0).sort((a, b) => (a.entries[0]?.seq ?? 0) - (b.entries[0]?.seq ?? 0));
    for (const { session, entries, elsewhere } of early) this.entries(session, entries, elsewhere);
  }

  #remember(ordinal: number, through: number): Told {
    const told: Told = { through, early: [] };
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

  #tell(session: SessionRef, entries: readonly Entry[], elsewhere: boolean): void {
    for (const watcher of this.watchers) {
      if (elsewhere) watcher.entries(session, entries, true);
      else watcher.entries(session, entries);
    }
  }
}
