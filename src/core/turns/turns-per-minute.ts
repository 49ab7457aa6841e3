import type { Clock } from "#kit/clock.ts";

const MINUTES = 60;
const MINUTE_MS = 60_000;

export type TurnsPerMinute = ReturnType<typeof createTurnsPerMinute>;

/** Counts the turns that start on this gateway, by the minute of its clock. A jump of that clock moves no turn to another minute. */
export function createTurnsPerMinute(clock: Pick<Clock, "now" | "monotonic">) {
  const firstMinute = clock.monotonic() - (clock.now() % MINUTE_MS);
  const counts = new Array<number>(MINUTES).fill(0);
  let minute = 0;
  const toThisMinute = () => {
    const now = Math.floor((clock.monotonic() - firstMinute) / MINUTE_MS);
    minute = Math.max(minute, now - MINUTES);
    while (minute < now) counts[++minute % MINUTES] = 0;
  };
  return {
    count(): void {
      toThisMinute();
      counts[minute % MINUTES] = (counts[minute % MINUTES] as number) + 1;
    },
    /** The counts of the last hour, the oldest first. The last is that of the running minute. */
    read(): number[] {
      toThisMinute();
      const oldest = (minute + 1) % MINUTES;
      return [...counts.slice(oldest), ...counts.slice(0, oldest)];
    },
  };
}
