import { yieldToOthers } from "#kit/yield.ts";

/** Does a piece of work in the background; its errors and rejections go to its caller. */
export type InBackground = <T>(work: () => T | Promise<T>) => Promise<T>;

/**
 * Long work a piece at a time, one in each turn of the event loop, so that calls are answered in between. All that share one take turns.
 * A piece is never cut: it should take a millisecond at most.
 */
export function createBackground(): InBackground {
  let last: Promise<void> = Promise.resolve();
  return (work) => {
    last = last.then(() => yieldToOthers());
    return last.then(work);
  };
}
