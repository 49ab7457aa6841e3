/** Lets at most `limit` of each name do something at once; the others wait, first come, first served. */
export const createGates = (limit: number) => {
  const gates = new Map<string, { inside: number; waiting: Set<() => void> }>();
  return {
    /** Does `work` when there is room; leaves, with the signal's reason, when it aborts before. */
    async pass<T>(name: string, signal: AbortSignal, work: () => Promise<T>): Promise<T> {
      const gate = gates.get(name) ?? { inside: 0, waiting: new Set() };
      gates.set(name, gate);
      if (gate.inside >= limit) await turnAt(gate.waiting, signal);
      else gate.inside++;
      try {
        return await work();
      } finally {
        // Who comes next takes over the place.
        const [next] = gate.waiting;
        if (next) next();
        else if (--gate.inside === 0) gates.delete(name);
      }
    },
  };
};

const turnAt = (waiting: Set<() => void>, signal: AbortSignal): Promise<void> =>
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
