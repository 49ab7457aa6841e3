import { existsSync, readFileSync } from "node:fs";

/** How long the event loop stood still at most, until it is asked. */
export const watchLoop = (): (() => number) => {
  let longest = 0;
  let last = performance.now();
  let watching = true;
  const look = () => {
    const now = performance.now();
    longest = Math.max(longest, now - last);
    last = now;
    if (watching) setImmediate(look);
  };
  setImmediate(look);
  return () => {
    watching = false;
    return longest;
  };
};

/**
 * How long one turn of the event loop worked at most, until it is asked. On Linux time that the machine gave to others does not count,
 * so that a busy machine makes no difference.
 */
export const watchLoopWork = (): (() => number) => {
  let longest = 0;
  let last = workedMs();
  let watching = true;
  const look = () => {
    const now = workedMs();
    longest = Math.max(longest, now - last);
    last = now;
    if (watching) setImmediate(look);
  };
  setImmediate(look);
  return () => {
    watching = false;
    return longest;
  };
};

const SCHEDULED = "/proc/thread-self/schedstat";
const isTold = existsSync(SCHEDULED);

/** What this thread has worked so far. */
const workedMs = (): number =>
  isTold ? Number(readFileSync(SCHEDULED, "latin1").split(" ")[0]) / 1e6 : performance.now();
