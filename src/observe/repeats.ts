const AGAIN_MS = 60_000;
const QUIET_MS = 10_000;

type Trouble = { words: string; toldAt: number; times: number; untold: number };

/**
 * Keeps what fails again and again from filling the log: it is to be told the first time, where it fails otherwise, and each minute. `over` hears once
 * that nothing of it has failed for ten seconds, where anything had more than once. There must be few values of `of`.
 */
export const createRepeats = (over: (ended: { of: readonly string[]; times: number; ms: number }) => void) => {
  const troubles = new Map<string, Trouble>();
  let began = 0;
  let last = 0;

  const look = (): void => {
    const leftMs = last + QUIET_MS - performance.now();
    if (leftMs > 0) {
      setTimeout(look, Math.ceil(leftMs)).unref();
      return;
    }
    const of = [...troubles.keys()];
    const times = [...troubles.values()].reduce((sum, trouble) => sum + trouble.times, 0);
    troubles.clear();
    if (times > of.length) over({ of, times, ms: Math.round(last - began) });
  };

  /** Of how many nobody was told before this one; undefined where this one is not to be told either. */
  return (of: string, words: string): number | undefined => {
    const now = performance.now();
    const trouble = troubles.get(of);
    last = now;
    if (!trouble) {
      troubles.set(of, { words, toldAt: now, times: 1, untold: 0 });
      if (troubles.size > 1) return 0;
      began = now;
      look();
      return 0;
    }
    trouble.times++;
    const { untold } = trouble;
    if (words === trouble.words && now - trouble.toldAt < AGAIN_MS) {
      trouble.untold++;
      return undefined;
    }
    Object.assign(trouble, { words, toldAt: now, untold: 0 });
    return untold;
  };
};
