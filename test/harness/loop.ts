import { existsSync, openSync, readSync } from "node:fs";

/**
 * The longest time for which our own work blocked the event loop, since the last call. Time for other processes, for V8's own threads or for system
 * calls is not included.
 */
export function watchLoop(): () => number {
  let longest = 0;
  let [began, worked] = [performance.now(), workedMs()];
  let watching = true;
  const look = () => {
    const [now, workedNow] = [performance.now(), workedMs()];
    longest = Math.max(longest, Math.min(now - began, workedNow - worked));
    [began, worked] = [now, workedNow];
    if (watching) setImmediate(look);
  };
  setImmediate(look);
  return () => {
    watching = false;
    return longest;
  };
}

/** The lowest of several attempts, until one is less than `under`: a pause of our own code occurs every time. */
export async function leastOf(tries: number, under: number, measure: () => Promise<number>): Promise<number> {
  let least = Number.POSITIVE_INFINITY;
  for (let n = 0; n < tries && least >= under; n++) least = Math.min(least, await measure());
  return least;
}

/** The longest stretch of work while `act` runs. */
export async function stretchOf(act: () => Promise<unknown>): Promise<number> {
  const longest = watchLoop();
  await act();
  await new Promise((resolve) => setImmediate(resolve));
  return longest();
}

const SCHEDULED = "/proc/thread-self/schedstat";

/** The CPU time of this thread, or the time if the system does not report it. */
const workedMs = ((): (() => number) => {
  if (!existsSync(SCHEDULED)) return () => performance.now();
  const file = openSync(SCHEDULED, "r");
  const text = Buffer.alloc(64);
  return () => {
    // The file is up to 4 ms behind, but reading the process's time makes Linux update the time of this thread.
    process.cpuUsage();
    const length = readSync(file, text, 0, text.length, 0);
    return Number.parseInt(text.toString("latin1", 0, length), 10) / 1e6;
  };
})();
