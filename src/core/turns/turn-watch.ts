import type { Clock } from "#kit/clock.ts";
import type { Stop } from "#kit/stop-signal.ts";

/** For how long a turn may run, and its backend may be silent. */
type Limits = { deadlineMs: number; firstByteMs: number; silenceMs: number };

/** Stops a turn that passes its deadline, or whose backend does not begin, or falls silent. A sign of life only notes the time. */
export class TurnWatch {
  readonly #clock: Clock;
  readonly #limits: Limits;
  readonly #stop: Stop;
  readonly #deadline: number;
  #lastSign: number;
  #silenceMs: number;
  #hasBegun = false;
  #paused = 0;
  #goesOn: (() => boolean) | undefined = undefined;
  #stopTimer: (() => void) | undefined = undefined;

  /** `spentMs`: how long earlier attempts ran. */
  constructor(clock: Clock, limits: Limits, spentMs: number, stop: Stop) {
    this.#clock = clock;
    this.#limits = limits;
    this.#stop = stop;
    this.#lastSign = clock.monotonic();
    this.#deadline = this.#lastSign + limits.deadlineMs - spentMs;
    this.#silenceMs = limits.firstByteMs;
    this.#lookAgain(this.#lastSign);
  }

  /** The backend gave a sign. */
  alive(): void {
    this.#hasBegun = true;
    this.#allow(this.#limits.silenceMs);
  }

  /** Somebody else is asked now, who has as long to begin as the first had. */
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
    this.#stopTimer?.();
    this.#stopTimer = undefined;
  }

  #allow(ms: number): void {
    const isSooner = ms < this.#silenceMs;
    this.#lastSign = this.#clock.monotonic();
    this.#silenceMs = ms;
    if (isSooner && this.#stopTimer) this.#lookAgain(this.#lastSign);
  }

  #lookAgain(now: number): void {
    this.#stopTimer?.();
    const silentAt = (this.#paused > 0 ? now : this.#lastSign) + this.#silenceMs;
    this.#stopTimer = this.#clock.after(Math.min(this.#deadline, silentAt) - now, () => this.#look());
  }

  #look(): void {
    const now = this.#clock.monotonic();
    const isSilent = this.#paused === 0 && this.#lastSign + this.#silenceMs <= now;
    if (this.#deadline <= now) {
      this.#stop.abort("timeout");
    } else if (isSilent && !this.#goesOn?.()) {
      this.#stop.abort(this.#hasBegun ? "silence" : "no-answer");
    } else {
      if (isSilent) this.anew();
      this.#lookAgain(now);
    }
  }
}
