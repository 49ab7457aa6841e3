import { existsSync, openSync, readSync } from "node:fs";

/**
 * How long the event loop was kept at most by one stretch of our own work, until it is asked: time in which the machine served others, or
 * in which V8's own threads or a system call were waited for, does not count.
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

/** The least of several tries, until one is less than `under`: a pause that our own code makes comes every time. */
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

/** The CPU time of this thread; where the system does not tell, the time. */
const workedMs = ((): (() => number) => {
  if (!existsSync(SCHEDULED)) return () => performance.now();
  const file = openSync(SCHEDULED, "r");
  const text = Buffer.alloc(64);
  return () => {
    // The file is up to 4 ms behind, but for this: being asked for the process's time, Linux counts this thread's up to now.
    process.cpuUsage();
    const length = readSync(file, text, 0, text.length, 0);
    return Number.parseInt(text.toString("latin1", 0, length), 10) / 1e6;
  };
})();
