import { visibleLine } from "#kit/visible.ts";
import { type Budget, loggableMember } from "#observe/loggable.ts";

const bare = /^"[\w./:@+*-]+"$/;

function stackOf(error: Error, budget: Budget): string {
  try {
    const frames = String(error.stack).split("\n").slice(1, 20);
    return frames.map((frame) => `\n    ${visibleLine(budget.cut(frame.trim(), 300))}`).join("");
  } catch {
    return "";
  }
}

/** The local time of day with its offset from UTC: `10:54:31.123+02:00`. */
export function localTime(ms: number, minutesEast = -new Date(ms).getTimezoneOffset()): string {
  const time = new Date(ms + minutesEast * 60_000).toISOString().slice(11, 23);
  const [hours, minutes] = [Math.floor(Math.abs(minutesEast) / 60), Math.abs(minutesEast) % 60];
  return `${time}${minutesEast < 0 ? "-" : "+"}${twoDigits(hours)}:${twoDigits(minutes)}`;
}
function twoDigits(number: number): string {
  return String(number).padStart(2, "0");
}

const COLOURS: Record<string, number> = { debug: 90, info: 32, warn: 33, error: 31 };
const GREY = 90;
function painted(text: string, colour: number | undefined): string {
  return `\u001b[${colour ?? 0}m${text}\u001b[0m`;
}

/** One event formatted for people, with the control characters of requests escaped: `10:54:31.123+02:00 info  request operation=chat.send status=200`. */
export function prettyLine(
  { time, level, event, colour }: { time: string; level: string; event: string; colour: boolean },
  fields: object,
  budget: Budget,
): string {
  const paint = colour ? painted : (text: string) => text;
  let line = `${paint(time, GREY)} ${paint(level.padEnd(5), COLOURS[level])} ${visibleLine(event)}`;
  let stack = "";
  for (const key of Object.keys(fields)) {
    const value = (fields as Record<string, unknown>)[key];
    if (value === undefined) continue;
    const shown = value instanceof Error ? `${value.name}: ${value.message}` : value;
    if (value instanceof Error) stack += stackOf(value, budget);
    const text = JSON.stringify(loggableMember(key, shown, budget));
    line += ` ${paint(`${visibleLine(key)}=`, GREY)}${bare.test(text) ? text.slice(1, -1) : visibleLine(text)}`;
  }
  return `${line}${stack}\n`;
}
