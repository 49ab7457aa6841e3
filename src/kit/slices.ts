import type { Clock } from "./clock.ts";

const SLICE_MS = 0.5;

/** Does a piece of work in some slice; what it throws, or rejects with, is its caller's. */
export type InSlice = <T>(work: () => T | Promise<T>) => Promise<T>;

/**
 * Long work in slices, one in a turn of the event loop, so that calls are answered in between. Who shares one takes turns. A piece is
 * never cut: what it does at once should take a millisecond at most.
 */
export const createSlices = (clock: Clock): InSlice => {
  const waiting: (() => void)[] = [];
  let isPlanned = false;

  const plan = (): void => {
    if (isPlanned) return;
    isPlanned = true;
    setImmediate(slice);
  };

  const slice = (): void => {
    isPlanned = false;
    const began = clock.monotonic();
    do waiting.shift()?.();
    while (waiting.length > 0 && clock.monotonic() - began < SLICE_MS);
    if (waiting.length > 0) plan();
  };

  return (work) =>
    new Promise((resolve, reject) => {
      waiting.push(() => {
        try {
          resolve(work());
        } catch (error) {
          reject(error);
        }
      });
      plan();
    });
};
