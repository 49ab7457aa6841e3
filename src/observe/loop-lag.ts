import { monitorEventLoopDelay } from "node:perf_hooks";
import { setTimeout as sleep } from "node:timers/promises";

/** How late the event loop was, in seconds. */
interface Lag {
  p50: number;
  p99: number;
  max: number;
}

export interface LoopLag extends Disposable {
  /** Since the window began. */
  read(): Lag;
  /** Starts the window again, after the current block of the loop. */
  forget(): Promise<void>;
}

const RESOLUTION_MS = 40;
/** A read this long after the window began ends it: a block is shown for a while, and then forgotten. */
const WINDOW_MS = 15_000;

export function createLoopLag(): LoopLag {
  const histogram = monitorEventLoopDelay({ resolution: RESOLUTION_MS });
  histogram.enable();
  let began = performance.now();
  // The histogram records the time between two beats; the lag is the excess over a beat.
  const seconds = (nanoseconds: number) => Math.max(0, nanoseconds / 1e9 - RESOLUTION_MS / 1e3);
  const restart = (): void => {
    histogram.reset();
    began = performance.now();
  };

  return {
    read: () => {
      const [p50, p99] = [histogram.percentile(50), histogram.percentile(99)].map(seconds) as [number, number];
      const lag = { p50, p99, max: seconds(histogram.max) };
      if (performance.now() - began >= WINDOW_MS) restart();
      return lag;
    },
    // A block of the loop is recorded by the late beat.
    forget: () => sleep(2 * RESOLUTION_MS, undefined, { ref: false }).then(restart),
    [Symbol.dispose]: () => void histogram.disable(),
  };
}
