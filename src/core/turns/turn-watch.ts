import type { Clock } from "#kit/clock.ts";
import type { Stop } from "#kit/stop-signal.ts";

/** For how long a turn may run, and its backend may be silent. */
type Limits = { deadlineMs: number; firstByteMs: number; silenceMs: number };

/** Stops a turn that passes its deadline, or whose backend does not begin, or falls silent. A sign of life only notes the time. */
export class TurnWatch {
  readonly #clock: Clock;
  readonly #limits: Limits;
  readonly #stop: Stop;
  readonly #stopDeadline: () => void;
  #stopTimer = (): void => {};
  #lastSign: number;
  #limitMs: number;
  #hasBegun = false;
  #paused = 0;
  #isStopped = false;
  #goesOn = (): boolean => false;

  /** `spentMs`: how long earlier attempts ran. */
  constructor(clock: Clock, limits: Limits, spentMs: number, stop: Stop) {
    this.#clock = clock;
    this.#limits = limits;
    this.#stop = stop;
    this.#lastSign = clock.monotonic();
    this.#limitMs = limits.firstByteMs;
    this.#stopDeadline = clock.after(limits.deadlineMs - spentMs, () => stop.abort("timeout"));
    this.#lookIn(limits.firstByteMs);
  }

  /** The backend gave a sign. */
  alive(): void {
    this.#lastSign = this.#clock.monotonic();
    if (this.#hasBegun && this.#limitMs === this.#limits.silenceMs) return;
    this.#hasBegun = true;
    this.#allow(this.#limits.silenceMs);
  }

  /** Somebody else is asked now, who has as long to begin as the first had. */
  anew(): void {
    this.#lastSign = this.#clock.monotonic();
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
    this.#isStopped = true;
    this.#stopDeadline();
    this.#stopTimer();
  }

  #allow(ms: number): void {
    const isSooner = ms < this.#limitMs;
    this.#limitMs = ms;
    if (isSooner) this.#lookIn(ms);
  }

  #lookIn(ms: number): void {
    if (this.#isStopped) return;
    this.#stopTimer();
    this.#stopTimer = this.#clock.after(ms, () => this.#look());
  }

  #look(): void {
    const leftMs = this.#paused > 0 ? this.#limitMs : this.#lastSign + this.#limitMs - this.#clock.monotonic();
    if (leftMs > 0) {
      this.#lookIn(leftMs);
    } else if (this.#goesOn()) {
      this.anew();
      this.#lookIn(this.#limitMs);
    } else {
      this.#stop.abort(this.#hasBegun ? "silence" : "no-answer");
    }
  }
}
