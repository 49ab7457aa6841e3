import { once } from "#kit/once.ts";
import { loadCron, type PlannedTimes, timesEvery } from "#kit/schedule-times.ts";
import type { ScheduleState } from "#store/store.ts";
import type { ScheduleSettings } from "./settings.ts";

type Planned = Pick<ScheduleSettings, "cron" | "everyMs" | "timeZone">;

/** The text that identifies the times of a schedule. */
export function planOf({ cron, everyMs, timeZone }: Planned): string {
  return cron === undefined ? `every ${everyMs}` : `${timeZone} ${cron}`;
}

const SHOWN = 5;

/** The planned times of schedules. */
export function createScheduleTimes() {
  const load = once(loadCron);
  const crons = new Map<string, PlannedTimes>();

  /** An interval counts from its first planned time: before that is stored, from `now`. */
  const timesOf = async (schedule: Planned, anchorAt: number): Promise<PlannedTimes> => {
    const { cron, everyMs = 0, timeZone } = schedule;
    if (cron === undefined) return timesEvery(everyMs, anchorAt);
    const plan = planOf(schedule);
    const times = crons.get(plan) ?? (await load())(cron, timeZone);
    crons.set(plan, times);
    return times;
  };

  return {
    timesOf,
    /** The next planned times of a schedule; none while it is paused. */
    async nextOf(schedule: Planned, { plan, nextAt, anchorAt = 0 }: ScheduleState): Promise<number[]> {
      if (nextAt === undefined || plan !== planOf(schedule)) return [];
      const times = await timesOf(schedule, anchorAt);
      const next = [nextAt];
      for (let time = times.after(nextAt); time !== undefined && next.length < SHOWN; time = times.after(time))
        next.push(time);
      return next;
    },
  };
}

export type ScheduleTimes = ReturnType<typeof createScheduleTimes>;
