import type { StopSignal } from "./stop-signal.ts";

/** The promise, or the signal's reason if the signal aborts first. A later failure of the promise is ignored. */
export function orAborted<T>(promise: Promise<T>, signal: StopSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    const leave = () => reject(signal.reason);
    if (signal.aborted) leave();
    else signal.addEventListener("abort", leave, { once: true });
    const stay = () => signal.removeEventListener("abort", leave);
    promise.then(resolve, reject);
    promise.then(stay, stay);
  });
}
