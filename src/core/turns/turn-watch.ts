import type { Clock } from "#kit/clock.ts";
import { NOWHERE, Roster } from "#kit/tables.ts";

export type TurnWatch = {
  /** The backend gave a sign. */
  alive(): void;
  /** Somebody else is asked now: who has as long to begin as the first had. */
  anew(): void;
  /** Who is asked before the backend is told of as late: true where it goes on, with somebody else. */
  whenLate(goesOn: () => boolean): void;
  /** Waits for what is not the backend's doing, a tool, without taking it for silence. Afterwards it has as long as to begin. */
  pause<T>(work: Promise<T>): Promise<T>;
  stop(): void;
};

type Waits = { firstByteMs: number; silenceMs: number };
/** Told once, of a backend that does not begin, or falls silent. */
type Late = { stop(reason: "no-answer" | "silence"): void };

export type TurnWatches = ReturnType<typeof createWatches>;

/**
 * Watches backends that answer. One timer for all of them, set to the first that could be late: one for each would cost a short turn more than
 * all else that guards it. A sign of life only notes the time.
 */
export const createWatches = (clock: Clock) => {
  const watches = new Roster<Watch>();
  let due = Number.POSITIVE_INFINITY;
  let stopTimer: (() => void) | undefined;

  const look = (): void => {
    due = Number.POSITIVE_INFINITY;
    const now = clock.monotonic();
    let first = Number.POSITIVE_INFINITY;
    for (const watch of watches.list()) {
      // One that was told of may have ended another.
      if (watch.at === NOWHERE) continue;
      if (watch.isPaused) first = Math.min(first, now + watch.limit);
      else if (watch.last + watch.limit > now || watch.goesOn()) first = Math.min(first, watch.last + watch.limit);
      else watch.tell();
    }
    lookBy(first);
  };
  const lookBy = (at: number): void => {
    if (at >= due) return;
    due = at;
    stopTimer?.();
    stopTimer = clock.after(at - clock.monotonic(), look);
  };
  const stop = (watch: Watch): void => {
    watches.delete(watch);
    if (watches.size > 0) return;
    due = Number.POSITIVE_INFINITY;
    stopTimer?.();
    stopTimer = undefined;
  };

  return {
    open(waits: Waits, late: Late): TurnWatch {
      const watch = new Watch(waits, late, { clock, lookBy, stop });
      watches.add(watch);
      lookBy(watch.last + watch.limit);
      return watch;
    },
  };
};

type Watcher = { clock: Clock; lookBy(at: number): void; stop(watch: Watch): void };

class Watch implements TurnWatch {
  at = NOWHERE;
  last: number;
  limit: number;
  readonly #waits: Waits;
  readonly #late: Late;
  readonly #watcher: Watcher;
  #hasBegun = false;
  #paused = 0;
  #whenLate: (() => boolean) | undefined = undefined;

  constructor(waits: Waits, late: Late, watcher: Watcher) {
    this.#waits = waits;
    this.#late = late;
    this.#watcher = watcher;
    this.last = watcher.clock.monotonic();
    this.limit = waits.firstByteMs;
  }

  get isPaused(): boolean {
    return this.#paused > 0;
  }

  alive(): void {
    this.last = this.#watcher.clock.monotonic();
    if (this.#hasBegun && this.limit === this.#waits.silenceMs) return;
    this.#hasBegun = true;
    this.#allow(this.#waits.silenceMs);
  }

  anew(): void {
    this.last = this.#watcher.clock.monotonic();
    this.#allow(this.#waits.firstByteMs);
  }

  whenLate(goesOn: () => boolean): void {
    this.#whenLate = goesOn;
  }

  /** Nothing came in time, and somebody else is asked now. */
  goesOn(): boolean {
    if (!this.#whenLate?.()) return false;
    this.anew();
    return true;
  }

  async pause<T>(work: Promise<T>): Promise<T> {
    this.#paused++;
    try {
      return await work;
    } finally {
      this.#paused--;
      this.anew();
    }
  }

  stop(): void {
    this.#watcher.stop(this);
  }

  tell(): void {
    this.stop();
    this.#late.stop(this.#hasBegun ? "silence" : "no-answer");
  }

  #allow(ms: number): void {
    const isSooner = ms < this.limit;
    this.limit = ms;
    if (isSooner && this.at !== NOWHERE) this.#watcher.lookBy(this.last + ms);
  }
}
