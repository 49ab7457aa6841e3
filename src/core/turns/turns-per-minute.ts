import type { Clock } from "#kit/clock.ts";

const MINUTES = 60;
const MINUTE_MS = 60_000;

export type TurnsPerMinute = ReturnType<typeof createTurnsPerMinute>;

/** Counts the turns that start on this gateway, by the minute of its clock. A jump of that clock moves no turn to another minute. */
export function createTurnsPerMinute(clock: Pick<Clock, "now" | "monotonic">) {
  const firstMinute = clock.monotonic() - (clock.now() % MINUTE_MS);
  /** The turns of each agent. */
  const counts = Array.from({ length: MINUTES }, () => new Map<string, number>());
  let minute = 0;
  const toThisMinute = () => {
    const now = Math.floor((clock.monotonic() - firstMinute) / MINUTE_MS);
    minute = Math.max(minute, now - MINUTES);
    while (minute < now) counts[++minute % MINUTES]?.clear();
  };
  return {
    count(agent: string): void {
      toThisMinute();
      const now = counts[minute % MINUTES];
      now?.set(agent, (now.get(agent) ?? 0) + 1);
    },
    /** The counts of the last hour, the oldest first, of these agents or of all. The last is that of the running minute. */
    read(agents?: readonly string[]): number[] {
      toThisMinute();
      const oldest = (minute + 1) % MINUTES;
      const sumOf = (ofAgents: ReadonlyMap<string, number>) =>
        (agents ?? [...ofAgents.keys()]).reduce((sum, agent) => sum + (ofAgents.get(agent) ?? 0), 0);
      return [...counts.slice(oldest), ...counts.slice(0, oldest)].map(sumOf);
    },
  };
}
