import { type IntervalHistogram, monitorEventLoopDelay } from "node:perf_hooks";

/** How late the event loop was, in seconds. */
interface Lag {
  p50: number;
  p99: number;
  max: number;
}

export interface LoopLag extends Disposable {
  /** Since the window began; the first read starts the measuring. */
  read(): Lag;
  /** It is being measured: a read costs nothing that is not spent anyway. */
  isMeasured(): boolean;
  /** Begins the window anew, behind what stands still at this moment. */
  forget(): Promise<void>;
}

const RESOLUTION_MS = 40;
/** A read this long after the window began ends it: a block is shown for a while, and then forgotten. */
const WINDOW_MS = 15_000;

export const createLoopLag = (): LoopLag => {
  let histogram: IntervalHistogram | undefined;
  let began = 0;
  // The histogram records the time between two beats; the lag is the excess over a beat.
  const seconds = (nanoseconds: number) => Math.max(0, nanoseconds / 1e9 - RESOLUTION_MS / 1e3);

  const start = (): IntervalHistogram => {
    histogram = monitorEventLoopDelay({ resolution: RESOLUTION_MS });
    histogram.enable();
    began = performance.now();
    return histogram;
  };

  return {
    isMeasured: () => histogram !== undefined,
    read: () => {
      const seen = histogram ?? start();
      const lag = { p50: seconds(seen.percentile(50)), p99: seconds(seen.percentile(99)), max: seconds(seen.max) };
      if (performance.now() - began >= WINDOW_MS) {
        seen.reset();
        began = performance.now();
      }
      return lag;
    },
    // A stall is recorded by the beat that comes late.
    forget: () =>
      new Promise((resolve) => {
        setTimeout(() => {
          histogram?.reset();
          began = performance.now();
          resolve();
        }, 2 * RESOLUTION_MS).unref();
      }),
    [Symbol.dispose]: () => {
      histogram?.disable();
      histogram = undefined;
    },
  };
};
