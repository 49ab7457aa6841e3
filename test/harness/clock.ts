import { setImmediate as nextLoop } from "node:timers/promises";
import type { Clock } from "#kit/clock.ts";

/** A clock that only a test moves. */
export type ManualClock = Clock & {
  /** Lets `ms` pass, timer by timer. The effects of each timer have settled before the next one fires. */
  advance(ms: number): Promise<void>;
  /** Lets `ms` pass while nothing can run, as in a blocked event loop. Then all due timers fire, the earliest first. */
  block(ms: number): Promise<void>;
  /** Moves only the wall clock, as an administrator or a time server does. */
  jump(ms: number): void;
  /** Waits until all promises that can continue have continued. */
  settle(): Promise<void>;
  /** The number of waiting timers. */
  timers(): number;
};

type Timer = { due: number; fire: () => void };

/** Starts at a full hour, for tests of hourly counters. */
export const START = Date.UTC(2026, 10, 21, 8);

export function createManualClock(): ManualClock {
  let wall = START;
  let time = 1_000;
  const timers = new Set<Timer>();

  const settle = async () => {
    // Twice, because a promise may itself have waited for the loop.
    await nextLoop();
    await nextLoop();
  };
  const move = (ms: number) => {
    wall += ms;
    time += ms;
  };
  /** The earliest timer that is due at `until`. */
  const next = (until: number): Timer | undefined => {
    let found: Timer | undefined;
    for (const timer of timers) if (timer.due <= until && (!found || timer.due < found.due)) found = timer;
    return found;
  };
  const fireDue = async (until: number, onFire: (timer: Timer) => void) => {
    for (let timer = next(until); timer; timer = next(until)) {
      timers.delete(timer);
      onFire(timer);
      timer.fire();
      await settle();
    }
  };

  return {
    // Whole milliseconds, as the system's clock: the times of timers with fractions do not add up exactly.
    now: () => Math.round(wall),
    monotonic: () => time,
    after: (ms, fire) => {
      const timer = { due: time + Math.max(ms, 0), fire };
      timers.add(timer);
      return () => timers.delete(timer);
    },
    async advance(ms) {
      await settle();
      const end = time + ms;
      await fireDue(end, ({ due }) => move(Math.max(due - time, 0)));
      move(end - time);
      await settle();
    },
    async block(ms) {
      move(ms);
      await fireDue(time, () => {});
    },
    jump: (ms) => {
      wall += ms;
    },
    settle,
    timers: () => timers.size,
  };
}
