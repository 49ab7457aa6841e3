import type { Clock } from "./clock.ts";

export type TurnWatch = {
  /** The backend gave a sign. */
  alive(): void;
  /** Somebody else is asked now: who has as long to begin as the first had. */
  anew(): void;
  /** Waits for what is not the backend's doing, a tool, without taking it for silence. Afterwards it has as long as to begin. */
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
  let limit = firstByteMs;
  let paused = 0;
  let stopTimer: (() => void) | undefined;
  const look = () => {
    const quiet = paused > 0 ? 0 : clock.monotonic() - last;
    if (quiet >= limit) late(hasBegun ? "silence" : "no-answer");
    else wait(limit - quiet);
  };
  const wait = (ms: number) => {
    stopTimer = clock.after(ms, look);
  };
  const allow = (ms: number) => {
    const isSooner = ms < limit;
    limit = ms;
    if (!isSooner) return;
    stopTimer?.();
    wait(ms);
  };
  const anew = () => {
    last = clock.monotonic();
    allow(firstByteMs);
  };
  wait(firstByteMs);
  return {
    alive() {
      last = clock.monotonic();
      if (hasBegun && limit === silenceMs) return;
      hasBegun = true;
      allow(silenceMs);
    },
    anew,
    async pause(work) {
      paused++;
      try {
        return await work;
      } finally {
        paused--;
        anew();
      }
    },
    stop: () => stopTimer?.(),
  };
};
