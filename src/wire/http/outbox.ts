import type { ServerResponse } from "node:http";

/**
 * The number of answers that leave together. A write wakes its reader, and to wake one that sleeps on another core is a third of
 * the cost of a short request. When several writes follow each other, the first pays for all. More would make the first callers
 * wait for the last.
 */
const AT_ONCE = 32;

let waiting: (ServerResponse | string | Buffer)[] = [];
let isDue = false;

/** Ends an answer within this turn of the event loop, together with the others of the turn. */
export const endSoon = (res: ServerResponse, body: string | Buffer): void => {
  waiting.push(res, body);
  if (waiting.length >= AT_ONCE * 2) endAll();
  else if (!isDue) {
    isDue = true;
    setImmediate(endDue);
  }
};

const endDue = (): void => {
  isDue = false;
  endAll();
};

const endAll = (): void => {
  const ending = waiting;
  waiting = [];
  for (let at = 0; at < ending.length; at += 2) endOne(ending[at] as ServerResponse, ending[at + 1] as string | Buffer);
};

/** One that cannot be ended is cut off: it must not take the others with it, nor the process. */
const endOne = (res: ServerResponse, body: string | Buffer): void => {
  try {
    res.end(body);
  } catch {
    res.destroy();
  }
};
