/** The planned times of a schedule, in milliseconds by UTC. */
export type PlannedTimes = {
  /** The first planned time later than `time`; undefined if there is none. */
  after(time: number): number | undefined;
  /** The last planned time that is not later than `time`; undefined if there is none. */
  upTo(time: number): number | undefined;
};

/**
 * Reads cron expressions. A time that a clock change skips is planned right after the change, and one that a clock change repeats is planned once. With
 * a wildcard in the seconds, minutes or hours, the skipped times are left out and the repeated ones are planned twice. The package is loaded at the first
 * call, because most gateways have no schedules.
 */
export async function loadCron(): Promise<(expression: string, timeZone: string) => PlannedTimes> {
  const { Cron } = await import("croner");
  return (expression, timeZone) => {
    const cron = new Cron(expression, { timezone: timeZone, mode: "5-or-6-parts", fixedTimeRule: "no-wildcard" });
    return {
      after: (time) => cron.nextRun(wholeSecond(time))?.getTime(),
      upTo: (time) => cron.previousRuns(1, new Date(wholeSecond(time).getTime() + SECOND))[0]?.getTime(),
    };
  };
}

const FIELDS = ["minute", "hour", "day of the month", "month", "day of the week"];
const EXAMPLE = "for example `0 9 * * 1-5`";
const RANGES: Readonly<Record<string, string>> = {
  second: "a second that is not from 0 to 59",
  minute: "a minute that is not from 0 to 59",
  hour: "an hour that is not from 0 to 23",
  day: "a day that is not from 1 to 31",
  month: "a month that is not from 1 to 12 or JAN to DEC",
  dayOfWeek: "a day of the week that is not from 0 to 7 or SUN to SAT",
};

/** The flaw of a cron expression, as the end of a sentence; undefined for a valid one. `readCron` is the function that `loadCron` returns. */
export function cronFlaw(
  readCron: Awaited<ReturnType<typeof loadCron>>,
  expression: string,
  timeZone: string,
  now: number,
): string | undefined {
  const fields = expression.trim().split(/\s+/);
  const isNamed = fields.length === 1 && expression.includes("@");
  if (!isNamed && fields.length !== 5 && fields.length !== 6)
    return `must have five fields (${FIELDS.join(", ")}) or six with the second first, but has ${fields.length}: ${EXAMPLE}.`;
  if (expression.includes("?")) return "has a `?`: write `*` for any value.";
  try {
    if (readCron(expression, timeZone).after(now) === undefined) return "never comes true: no date matches it.";
    return undefined;
  } catch (error) {
    const { message } = error as Error;
    const range = RANGES[/Invalid value for (\w+)/.exec(message)?.[1] ?? ""];
    if (range !== undefined) return `has ${range}.`;
    const reason = message
      .replace(/^Cron\w*: /, "")
      .replace(/^Syntax error, /, "")
      .replace(/\.$/, "");
    return `is not a cron expression: ${reason}; write five fields, ${EXAMPLE}.`;
  }
}

const SECOND = 1_000;

function wholeSecond(time: number): Date {
  return new Date(Math.floor(time / SECOND) * SECOND);
}

/** A planned time each `everyMs`, on the grid through `anchor`. */
export function timesEvery(everyMs: number, anchor: number): PlannedTimes {
  const upTo = (time: number) => anchor + Math.floor((time - anchor) / everyMs) * everyMs;
  return { upTo, after: (time) => upTo(time) + everyMs };
}

export const MOST_COUNTED = 1_000;

/** The planned times that passed without a run: at most a thousand are counted. */
export type MissedTimes = { count: number; firstAt: number; lastAt: number };

/**
 * The work at `now` of a schedule whose next run was planned for `plannedAt`, which has passed. `run` is the planned time that is on time, and `missed`
 * are the ones before it that are late: by more than a minute, or more than half of the time to the next one. `nextAt` is the next planned time.
 */
export function dueTimes(
  times: PlannedTimes,
  plannedAt: number,
  now: number,
): { run: number | undefined; missed: MissedTimes | undefined; nextAt: number | undefined } {
  const nextAt = times.after(now);
  if (!isLate(times, plannedAt, now)) return { run: plannedAt, missed: undefined, nextAt: times.after(plannedAt) };
  const last = Math.max(times.upTo(now) ?? plannedAt, plannedAt);
  const isOnTime = last > plannedAt && !isLate(times, last, now);
  let [count, lastAt] = [1, plannedAt];
  for (let next = times.after(plannedAt); next !== undefined && next <= last; next = times.after(next)) {
    if (isOnTime && next === last) break;
    lastAt = next;
    if (++count >= MOST_COUNTED) {
      lastAt = isOnTime ? (times.upTo(last - 1) ?? next) : last;
      break;
    }
  }
  return { run: isOnTime ? last : undefined, missed: { count, firstAt: plannedAt, lastAt }, nextAt };
}

const LATEST_MS = 60_000;

function isLate(times: PlannedTimes, plannedAt: number, now: number): boolean {
  const next = times.after(plannedAt) ?? Infinity;
  return now - plannedAt > Math.min(LATEST_MS, (next - plannedAt) / 2);
}

/**
 * The next planned time at `now`, where `handledAt` is the last one that was handled. If the clock was set back, a time that was handled is not planned
 * again. If it was set back by several planned times, it was wrong before, and the times are planned again.
 */
export function nextTime(times: PlannedTimes, now: number, handledAt: number | undefined): number | undefined {
  const next = times.after(now);
  if (handledAt === undefined || next === undefined || handledAt < next) return next;
  const second = times.after(next);
  return second !== undefined && second <= handledAt ? next : times.after(handledAt);
}
