/** Lets at most `limit` pieces of work of each name run at once; the others wait, first come, first served. */
export const createLimiter = (limit: number) => {
  const names = new Map<string, { running: number; waiting: Set<() => void> }>();
  return {
    /** Does `work` when there is room; leaves, with the signal's reason, when it aborts before. */
    async run<T>(name: string, signal: AbortSignal, work: () => Promise<T>): Promise<T> {
      const of = names.get(name) ?? { running: 0, waiting: new Set() };
      names.set(name, of);
      if (of.running < limit) of.running++;
      else await waitIn(of.waiting, signal);
      try {
        return await work();
      } finally {
        // The place goes on to the next one that waits.
        const [next] = of.waiting;
        if (next) next();
        else if (--of.running === 0) names.delete(name);
      }
    },
  };
};

const waitIn = (waiting: Set<() => void>, signal: AbortSignal): Promise<void> =>
  new Promise((resolve, reject) => {
    const enter = () => {
      waiting.delete(enter);
      signal.removeEventListener("abort", leave);
      resolve();
    };
    const leave = () => {
      waiting.delete(enter);
      reject(signal.reason);
    };
    waiting.add(enter);
    signal.addEventListener("abort", leave, { once: true });
    if (signal.aborted) leave();
  });
