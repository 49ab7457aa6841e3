/**
 * Windows of an hour, a day or a month by the clock of a time zone. The windows of a zone follow one another without a gap, also when its
 * clocks change: a day then has 23 or 25 hours, and an hour that the clocks repeat is two windows.
 */

export type Period = "hour" | "day" | "month";
export type WindowOf = { per: Period; timeZone: string };
/** From `start` up to and without `end`, in milliseconds by UTC. */
export type Window = { readonly start: number; readonly end: number };

const HOUR = 3_600_000;
/** Local times differ from UTC by less than this. */
const FARTHEST = 16 * HOUR;

/** The last window of each period and zone, because nearly all calls are within it. */
const latest = new WeakMap<WindowOf, Window>();

export function windowAt(now: number, of: WindowOf): Window {
  const last = latest.get(of);
  if (last && last.start <= now && now < last.end) return last;
  const { per, timeZone } = of;
  const window = per === "hour" ? hourAt(now, timeZone) : calendarAt(now, per, timeZone);
  latest.set(of, window);
  return window;
}

export function isTimeZone(name: string): boolean {
  try {
    new Intl.DateTimeFormat("en-US", { timeZone: name });
    return true;
  } catch {
    return false;
  }
}

function hourAt(now: number, timeZone: string): Window {
  const offset = offsetAt(now, timeZone);
  const start = Math.floor((now + offset) / HOUR) * HOUR - offset;
  const hasOffset = (time: number) => offsetAt(time, timeZone) === offset;
  // A change of the clocks begins a new hour, too.
  return {
    start: hasOffset(start) ? start : firstTime(start, now, hasOffset),
    end: hasOffset(start + HOUR - 1) ? start + HOUR : firstTime(now, start + HOUR, (time) => !hasOffset(time)),
  };
}

/** The day or month of the local date. */
function calendarAt(now: number, per: "day" | "month", timeZone: string): Window {
  const local = new Date(now + offsetAt(now, timeZone));
  const [year, month, day] = [local.getUTCFullYear(), local.getUTCMonth(), local.getUTCDate()];
  const beginning = (after: number): number => {
    const date = per === "day" ? Date.UTC(year, month, day + after) : Date.UTC(year, month + after, 1);
    const hasBegun = (time: number) => time + offsetAt(time, timeZone) >= date;
    return firstTime(date - FARTHEST, date + FARTHEST, hasBegun);
  };
  return { start: beginning(0), end: beginning(1) };
}

/** The first time in [from, to] for which `is` is true, if it is true from then on; `to` if there is none before it. */
function firstTime(from: number, to: number, is: (time: number) => boolean): number {
  let [low, high] = [from, to];
  while (low < high) {
    const middle = Math.floor((low + high) / 2);
    if (is(middle)) high = middle;
    else low = middle + 1;
  }
  return low;
}

const formats = new Map<string, Intl.DateTimeFormat>();

/** The time by which the local clock is ahead of UTC, in milliseconds. */
function offsetAt(time: number, timeZone: string): number {
  if (timeZone === "UTC") return 0;
  const format = formats.get(timeZone) ?? formatOf(timeZone);
  const part: Partial<Record<Intl.DateTimeFormatPartTypes, number>> = {};
  for (const { type, value } of format.formatToParts(time)) part[type] = Number(value);
  const { year = 0, month = 1, day = 1, hour = 0, minute = 0, second = 0 } = part;
  return Date.UTC(year, month - 1, day, hour, minute, second) - Math.floor(time / 1_000) * 1_000;
}

function formatOf(timeZone: string): Intl.DateTimeFormat {
  const format = new Intl.DateTimeFormat("en-US", {
    timeZone,
    hourCycle: "h23",
    year: "numeric",
    month: "numeric",
    day: "numeric",
    hour: "numeric",
    minute: "numeric",
    second: "numeric",
  });
  formats.set(timeZone, format);
  return format;
}
