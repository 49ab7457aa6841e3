import type { Clock } from "./clock.ts";

const SLICE_MS = 0.5;

/** Does a piece of work in the background; its errors and rejections go to its caller. */
export type InBackground = <T>(work: () => T | Promise<T>) => Promise<T>;

/**
 * Long work a piece at a time, for half a millisecond in each turn of the event loop, so that calls are answered in between. All that share one
 * take turns. A piece is never cut: it should take a millisecond at most.
 */
export const createBackground = (clock: Clock): InBackground => {
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
