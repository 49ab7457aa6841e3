const AGAIN_MS = 60_000;
const QUIET_MS = 10_000;

type Failure = { message: string; reportedAt: number; times: number; unreported: number };
type Ended = { names: readonly string[]; times: number; ms: number };

/**
 * Keeps what fails again and again from filling the log. A failure is reported the first time, when its message changes, and once a minute.
 * `onEnd` is called once nothing has failed for ten seconds, if anything had failed more than once. There must be few names.
 */
export function createRepeats(onEnd: (ended: Ended) => void) {
  const failures = new Map<string, Failure>();
  let began = 0;
  let last = 0;

  const checkEnd = (): void => {
    const leftMs = last + QUIET_MS - performance.now();
    if (leftMs > 0) {
      setTimeout(checkEnd, Math.ceil(leftMs)).unref();
      return;
    }
    const names = [...failures.keys()];
    const times = [...failures.values()].reduce((sum, failure) => sum + failure.times, 0);
    failures.clear();
    if (times > names.length) onEnd({ names, times, ms: Math.round(last - began) });
  };

  /** How many failures went unreported before this one; undefined where this one is not to be reported either. */
  return (name: string, message: string): number | undefined => {
    const now = performance.now();
    const failure = failures.get(name);
    last = now;
    if (!failure) {
      failures.set(name, { message, reportedAt: now, times: 1, unreported: 0 });
      if (failures.size > 1) return 0;
      began = now;
      checkEnd();
      return 0;
    }
    failure.times++;
    const { unreported } = failure;
    if (message === failure.message && now - failure.reportedAt < AGAIN_MS) {
      failure.unreported++;
      return undefined;
    }
    Object.assign(failure, { message, reportedAt: now, unreported: 0 });
    return unreported;
  };
}
