import type { SilenceWatch } from "#backends/backend.ts";
import type { Clock } from "#kit/clock.ts";
import type { Stop } from "#kit/stop-signal.ts";

/** Why a running turn is stopped from outside: its signal is aborted with one of these. */
export type StopReason = "cancelled" | "timeout" | "no-answer" | "silence" | "handed-back";

/** The time that a turn may run, and that its backend may be silent. */
type WatchLimits = { deadlineMs: number; firstByteMs: number; silenceMs: number };

/** Stops a turn that passes its deadline, or whose backend does not begin, or falls silent. A sign of life only notes the time. */
export class TurnWatch implements SilenceWatch {
  readonly #all: TurnWatches;
  readonly #limits: WatchLimits;
  readonly #stop: Stop;
  readonly #deadline: number;
  #lastSign: number;
  #silenceMs: number;
  #hasBegun = false;
  #paused = 0;
  #goesOn: (() => boolean) | undefined = undefined;

  /** `spentMs`: the time of the earlier attempts. */
  constructor(all: TurnWatches, now: number, limits: WatchLimits, spentMs: number, stop: Stop) {
    this.#all = all;
    this.#limits = limits;
    this.#stop = stop;
    this.#lastSign = now;
    this.#deadline = now + limits.deadlineMs - spentMs;
    this.#silenceMs = limits.firstByteMs;
  }

  /** The backend gave a sign. */
  alive(): void {
    this.#hasBegun = true;
    this.#allow(this.#limits.silenceMs);
  }

  /** Gives as long to begin as at first: somebody else is asked now. */
  anew(): void {
    this.#allow(this.#limits.firstByteMs);
  }

  /** Asked before a late turn is stopped: true where the backend goes on, with somebody else. */
  whenLate(goesOn: () => boolean): void {
    this.#goesOn = goesOn;
  }

  /** Waits for work that is not the backend's, a tool, without taking it for silence. Afterwards the backend has as long as to begin. */
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
    this.#all.delete(this);
  }

  #allow(ms: number): void {
    this.#lastSign = this.#all.clock.monotonic();
    this.#silenceMs = ms;
  }

  /** When to check next: never later than the shorter limit, which the next sign may bring into force. Signs are many, and set no timer. */
  nextCheck(now: number): number {
    const silentAt = (this.#paused > 0 ? now : this.#lastSign) + this.#silenceMs;
    const { firstByteMs, silenceMs } = this.#limits;
    return Math.min(this.#deadline, silentAt, now + Math.min(firstByteMs, silenceMs));
  }

  /** Stops the turn if it is late. */
  check(now: number): void {
    const isSilent = this.#paused === 0 && this.#lastSign + this.#silenceMs <= now;
    if (this.#deadline <= now) this.#end("timeout");
    else if (!isSilent) return;
    else if (this.#goesOn?.()) this.anew();
    else this.#end(this.#hasBegun ? "silence" : "no-answer");
  }

  #end(reason: StopReason): void {
    this.stop();
    this.#stop.abort(reason);
  }
}

/** The watches of all turns that run here. They share one timer, which is set for the earliest time at which one may be late. */
export class TurnWatches {
  readonly clock: Clock;
  readonly #watches = new Set<TurnWatch>();
  #dueAt = Number.POSITIVE_INFINITY;
  #stopTimer: (() => void) | undefined = undefined;

  constructor(clock: Clock) {
    this.clock = clock;
  }

  /** Watches a turn until its watch is stopped. */
  start(limits: WatchLimits, spentMs: number, stop: Stop): TurnWatch {
    const now = this.clock.monotonic();
    const watch = new TurnWatch(this, now, limits, spentMs, stop);
    this.#watches.add(watch);
    this.#checkAt(watch.nextCheck(now), now);
    return watch;
  }

  delete(watch: TurnWatch): void {
    this.#watches.delete(watch);
  }

  close(): void {
    this.#stopTimer?.();
    this.#watches.clear();
  }

  #checkAt(at: number, now: number): void {
    if (at >= this.#dueAt) return;
    this.#stopTimer?.();
    this.#dueAt = at;
    this.#stopTimer = this.clock.after(at - now, () => this.#check());
  }

  #check(): void {
    const now = this.clock.monotonic();
    this.#dueAt = Number.POSITIVE_INFINITY;
    for (const watch of this.#watches) watch.check(now);
    for (const watch of this.#watches) this.#checkAt(watch.nextCheck(now), now);
  }
}
