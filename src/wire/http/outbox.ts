import type { ServerResponse } from "node:http";

/**
 * The number of answers that leave together. A write wakes its reader, and to wake one that sleeps on another core is a third of
 * the cost of a short request. When several writes follow each other, the first pays for all. More would make the first callers
 * wait for the last.
 */
const AT_ONCE = 32;

type Answer = { res: ServerResponse; body: string | Buffer };

let waiting: Answer[] = [];

/** Ends an answer within this turn of the event loop, together with the others of the turn. */
export function endSoon(res: ServerResponse, body: string | Buffer): void {
  if (waiting.length === 0) setImmediate(endAll, waiting);
  waiting.push({ res, body });
  if (waiting.length >= AT_ONCE) endAll(waiting);
}

function endAll(ending: Answer[]): void {
  if (ending === waiting) waiting = [];
  for (const answer of ending.splice(0)) endOne(answer);
}

/** One that cannot be ended is cut off: it must not take the others with it, nor the process. */
function endOne({ res, body }: Answer): void {
  try {
    res.end(body);
  } catch {
    res.destroy();
  }
}
