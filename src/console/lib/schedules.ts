import { plural } from "./format.ts";

const DAYS = ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"];
const UNITS: Readonly<Record<string, string>> = { s: "second", m: "minute", h: "hour", d: "day" };

/** When a schedule runs: in words if that is simple, otherwise its cron expression. */
export function whenOf({ cron, every }: { cron: string | null; every: string | null }): string {
  if (cron !== null) return wordsOfCron(cron) ?? cron;
  const [, length, unit = ""] = /^(\d+)([smhd])$/.exec(every ?? "") ?? [];
  return length === undefined ? `Every ${every}` : everyOf(Number(length), UNITS[unit] ?? "");
}

function everyOf(length: number, unit: string): string {
  return `Every ${length === 1 ? unit : plural(length, unit)}`;
}

/** A cron expression in words; undefined if it is not simple. */
function wordsOfCron(cron: string): string | undefined {
  const [minute = "", hour = "", date = "", month = "", weekday = "", ...more] = cron.trim().split(/\s+/);
  if (month !== "*" || more.length > 0) return undefined;
  const days = daysOf(date, weekday);
  if (days === "Daily") {
    const interval = intervalOf(minute, hour);
    if (interval !== undefined) return interval;
  }
  const times = timesOf(minute, hour);
  return days === undefined || times === undefined ? undefined : `${days} at ${times}`;
}

/** A minute and an hour with a step as an interval, if it has the same length at the end of each hour or day. */
function intervalOf(minute: string, hour: string): string | undefined {
  const stepOf = (field: string, all: number) => {
    const step = field === "*" ? 1 : Number(/^\*\/(\d+)$/.exec(field)?.[1] ?? 0);
    return all % step === 0 ? step : undefined;
  };
  const minutes = stepOf(minute, 60);
  if (hour === "*" && minutes !== undefined) return everyOf(minutes, "minute");
  const hours = stepOf(hour, 24);
  if (hours === undefined || !isIn(minute, 59)) return undefined;
  return everyOf(hours, "hour") + (Number(minute) === 0 ? "" : ` at :${minute.padStart(2, "0")}`);
}

function daysOf(date: string, weekday: string): string | undefined {
  if (date !== "*")
    return weekday === "*" && isIn(date, 31) && date !== "0" ? `Monthly on day ${Number(date)}` : undefined;
  if (weekday === "*") return "Daily";
  if (/^(?:1-5|mon-fri)$/i.test(weekday)) return "Weekdays";
  const days = weekday.split(",").map(dayOf);
  if (!days.every((day) => day !== undefined)) return undefined;
  if (days.length === 1) return `${days[0]}s`;
  return listOf(days.map((day) => day.slice(0, 3)));
}

function dayOf(text: string): string | undefined {
  return /^[0-7]$/.test(text)
    ? DAYS[Number(text) % 7]
    : DAYS.find((day) => day.slice(0, 3).toLowerCase() === text.toLowerCase());
}

/** The most times of a day that are named. */
const NAMED = 3;

function timesOf(minute: string, hour: string): string | undefined {
  const hours = hour.split(",");
  if (!isIn(minute, 59) || hours.length > NAMED || !hours.every((one) => isIn(one, 23))) return undefined;
  return listOf(hours.map((one) => `${one.padStart(2, "0")}:${minute.padStart(2, "0")}`));
}

function isIn(field: string, most: number): boolean {
  return /^\d{1,2}$/.test(field) && Number(field) <= most;
}

function listOf(words: readonly string[]): string {
  return words.length < 2 ? words.join() : `${words.slice(0, -1).join(", ")} and ${words.at(-1)}`;
}

/** The time zone of the reader. */
export function readersZone(isUtc: boolean): string {
  return isUtc ? "UTC" : new Intl.DateTimeFormat().resolvedOptions().timeZone;
}

/** A planned time in the reader's zone and in that of the schedule, which is undefined where the browser does not know the zone. */
export type PlannedTime = { at: string; here: string; there: string | undefined };

/** The planned times of a schedule. Seconds are shown only if one of them has any. */
export function plannedTimes(next: readonly string[], zone: string, readerZone: string): PlannedTime[] {
  const hasSeconds = next.some((at) => new Date(at).getUTCSeconds() > 0);
  const here = formatOf(readerZone, hasSeconds);
  const there = formatOf(zone, hasSeconds);
  return next.map((at) => ({ at, here: here?.(at) ?? at, there: there?.(at) }));
}

function formatOf(timeZone: string, hasSeconds: boolean): ((at: string) => string) | undefined {
  try {
    const format = new Intl.DateTimeFormat("en-GB", {
      ...{ weekday: "short", day: "numeric", month: "short", hour: "2-digit", minute: "2-digit", timeZone },
      ...(hasSeconds && { second: "2-digit" }),
    });
    return (at) => format.format(new Date(at));
  } catch {
    return undefined;
  }
}

type Run = { outcome: "started" | "skipped" | "missed"; turn_status: string | null };

/** The state of a run: that of its turn, if it started one. */
export function stateOfRun({ outcome, turn_status }: Run): string {
  return outcome === "started" ? (turn_status ?? "gone") : outcome;
}

/** A schedule for a configuration of JSON5 or YAML. */
export function exampleSchedule(isYaml: boolean): string {
  const [begin, end] = isYaml ? ["", ""] : [" {", ","];
  const lines = [
    `schedules:${begin}`,
    `  brief:${begin}`,
    `    cron: "0 9 * * 1-5"${end}`,
    `    timeZone: "Europe/Berlin"${end}`,
    `    message: "Write the brief of the day."${end}`,
  ];
  return [...lines, ...(isYaml ? [] : ["  },", "},"])].join("\n");
}
