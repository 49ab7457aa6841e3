import type { Clock } from "#kit/clock.ts";

/** How long the system may take to clear away what was killed; what is a zombie for longer has nobody who buries it. */
const BURIAL_MS = 2_000;
const LONGEST_STEP_MS = 50;

/** A process group: a program that was started as the first of its own, and all that it started and that did not leave. */
export type Group = {
  readonly id: number;
  /** Asks it to end, then makes it. Resolves when none of it is left. Asked again, it answers the same. */
  stop(graceMs: number): Promise<void>;
  /** Makes it end at once. */
  kill(): Promise<void>;
};

export const createGroup = (id: number, clock: Clock, onGone: () => void): Group => {
  let gone = false;
  let stopping: Promise<void> | undefined;
  let killing: Promise<void> | undefined;

  /** Whether there was somebody to send it to. Once there was nobody, the id may become another's. */
  const send = (signal: NodeJS.Signals | 0): boolean => {
    if (gone) return false;
    try {
      process.kill(-id, signal);
      return true;
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === "EPERM") return true;
      gone = true;
      onGone();
      return false;
    }
  };
  const goneWithin = async (ms: number): Promise<boolean> => {
    const until = clock.monotonic() + ms;
    for (let step = 1; send(0); step = Math.min(step * 2, LONGEST_STEP_MS)) {
      if (clock.monotonic() >= until) return false;
      await new Promise<void>((resolve) => clock.after(step, resolve));
    }
    return true;
  };
  const kill = (): Promise<void> => {
    killing ??= (async () => {
      send("SIGKILL");
      if (await goneWithin(BURIAL_MS)) return;
      gone = true;
      onGone();
    })();
    return killing;
  };
  return {
    id,
    kill,
    stop: (graceMs) => {
      stopping ??= (async () => {
        send("SIGTERM");
        if (!(await goneWithin(graceMs))) await kill();
      })();
      return stopping;
    },
  };
};
