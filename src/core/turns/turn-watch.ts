import type { SilenceWatch } from "#backends/backend.ts";
import type { Clock } from "#kit/clock.ts";
import type { Stop } from "#kit/stop-signal.ts";

/** The reason for stopping a running turn. It is the reason with which the turn's signal is aborted. */
export type StopReason = "cancelled" | "timeout" | "no-answer" | "silence" | "handed-back";

/** The time limit of a turn, and the longest silences of its backend: before the first sign of life, and between two signs of life. */
type WatchLimits = { deadlineMs: number; firstByteMs: number; silenceMs: number };

/** Stops a turn at its deadline, or if its backend does not begin to answer or falls silent. A sign of life sets no timer, it only records the time. */
export class TurnWatch implements SilenceWatch {
  readonly #all: TurnWatches;
  readonly #limits: WatchLimits;
  readonly #stop: Stop;
  readonly #deadline: number;
  #lastSign: number;
  #silenceMs: number;
  #hasBegun = false;
  #paused = 0;
  #mayContinue: (() => boolean) | undefined = undefined;

  /** `spentMs`: the duration of the earlier attempts. */
  constructor(all: TurnWatches, now: number, limits: WatchLimits, spentMs: number, stop: Stop) {
    this.#all = all;
    this.#limits = limits;
    this.#stop = stop;
    this.#lastSign = now;
    this.#deadline = now + limits.deadlineMs - spentMs;
    this.#silenceMs = limits.firstByteMs;
  }

  /** Records a sign of life of the backend. */
  alive(): void {
    this.#hasBegun = true;
    this.#allow(this.#limits.silenceMs);
  }

  /** Restarts the limit for the first sign of life, because another server is asked now. */
  restart(): void {
    this.#allow(this.#limits.firstByteMs);
  }

  /** Sets a function that is called before a late turn is stopped. If it returns true, the backend continues with another server. */
  whenLate(mayContinue: () => boolean): void {
    this.#mayContinue = mayContinue;
  }

  /** Waits for a tool without counting the time as silence. Afterwards the limit for the first sign of life applies. */
  async pause<T>(work: Promise<T>): Promise<T> {
    this.#paused++;
    try {
      return await work;
    } finally {
      this.#paused--;
      this.restart();
    }
  }

  stop(): void {
    this.#all.delete(this);
  }

  #allow(ms: number): void {
    this.#lastSign = this.#all.clock.monotonic();
    this.#silenceMs = ms;
  }

  /** The time of the next check: at most the shorter limit from now, because a sign of life sets no timer and may change the limit. */
  nextCheck(now: number): number {
    const silentAt = (this.#paused > 0 ? now : this.#lastSign) + this.#silenceMs;
    const { firstByteMs, silenceMs } = this.#limits;
    return Math.min(this.#deadline, silentAt, now + Math.min(firstByteMs, silenceMs));
  }

  /** Stops the turn if it has passed a limit. */
  check(now: number): void {
    const isSilent = this.#paused === 0 && this.#lastSign + this.#silenceMs <= now;
    if (this.#deadline <= now) this.#end("timeout");
    else if (!isSilent) return;
    else if (this.#mayContinue?.()) this.restart();
    else this.#end(this.#hasBegun ? "silence" : "no-answer");
  }

  #end(reason: StopReason): void {
    this.stop();
    this.#stop.abort(reason);
  }
}

/** The watches of all turns of this gateway. They share one timer, which is set for the earliest time at which a turn may pass a limit. */
export class TurnWatches {
  readonly clock: Clock;
  readonly #watches = new Set<TurnWatch>();
  #dueAt = Number.POSITIVE_INFINITY;
  #stopTimer: (() => void) | undefined = undefined;

  constructor(clock: Clock) {
    this.clock = clock;
  }

  /** Watches a turn until `stop` is called. */
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
