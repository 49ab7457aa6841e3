/**
 * The end of a tick of the event loop, in two steps: first readers take the text that was written in the tick, then the messages that they make of
 * it are sent. So all pieces of a tick leave in one write, and still in their own tick. A function that is given twice is called once.
 */
const reads = new Set<() => void>();
const sends = new Set<() => void>();
let isDue = false;

export function readAtTickEnd(read: () => void): void {
  reads.add(read);
  schedule();
}

export function sendAtTickEnd(send: () => void): void {
  sends.add(send);
  schedule();
}

function schedule(): void {
  if (isDue) return;
  isDue = true;
  setImmediate(callAll, reads);
  // Node runs the promise jobs of one immediate before the next immediate.
  setImmediate(sendAll);
}

function sendAll(): void {
  isDue = false;
  callAll(sends);
  // Functions that the promise jobs of other readers have added.
  if (reads.size > 0) schedule();
}

function callAll(functions: Set<() => void>): void {
  const due = [...functions];
  functions.clear();
  for (const call of due) call();
}
