import { getHeapStatistics } from "node:v8";
import type { Clock } from "./clock.ts";

const LOOK_EVERY_MS = 500;
/** Past this share of the heap's limit a collection frees too little in time: new work would end the process. */
const SHORT = 0.9;

/** Tells when memory is short, looking at most twice a second. */
export const createPressure = (clock: Clock) => {
  let looked = -Infinity;
  let short = false;
  return (): boolean => {
    const now = clock.monotonic();
    if (now - looked >= LOOK_EVERY_MS) {
      looked = now;
      const { used_heap_size: used, heap_size_limit: limit } = getHeapStatistics();
      short = used > limit * SHORT;
    }
    return short;
  };
};
