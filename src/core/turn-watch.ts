import type { Clock } from "./clock.ts";

export type TurnWatch = {
  /** The backend gave a sign. */
  alive(): void;
  /** Waits for what is not the backend's doing, a tool, without taking it for silence. */
  pause<T>(work: Promise<T>): Promise<T>;
  stop(): void;
};

type Waits = { firstByteMs: number; silenceMs: number };

/** Tells of a backend that does not begin, or falls silent. One timer a turn: a sign of life only notes the time. */
export const createWatch = (
  clock: Clock,
  { firstByteMs, silenceMs }: Waits,
  late: (reason: "no-answer" | "silence") => void,
): TurnWatch => {
  let last = clock.monotonic();
  let hasBegun = false;
  let paused = 0;
  let stopTimer: (() => void) | undefined;
  const look = () => {
    const limit = hasBegun ? silenceMs : firstByteMs;
    const quiet = paused > 0 ? 0 : clock.monotonic() - last;
    if (quiet >= limit) late(hasBegun ? "silence" : "no-answer");
    else wait(limit - quiet);
  };
  const wait = (ms: number) => {
    stopTimer = clock.after(ms, look);
  };
  wait(firstByteMs);
  return {
    alive() {
      last = clock.monotonic();
      if (hasBegun) return;
      hasBegun = true;
      if (silenceMs >= firstByteMs) return;
      stopTimer?.();
      wait(silenceMs);
    },
    async pause(work) {
      paused++;
      try {
        return await work;
      } finally {
        paused--;
        last = clock.monotonic();
      }
    },
    stop: () => stopTimer?.(),
  };
};
