import { UsageError } from "./failures.ts";
import { files } from "./files.ts";

/** A whole number of an option. */
export function wholeNumber(text: string, option: string, least = 1): number {
  const number = Number(text);
  if (text.trim() !== "" && Number.isSafeInteger(number) && number >= least) return number;
  throw new UsageError(`${option} ${text} is not a whole number of at least ${least}.`);
}

/** A number above 0 of an option. */
export function positive(text: string, option: string): number {
  const number = Number(text);
  if (text.trim() !== "" && Number.isFinite(number) && number > 0) return number;
  throw new UsageError(`${option} ${text} is not a number above 0.`);
}

const UNITS: Record<string, number> = { s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 };

/** A duration such as `30d` in milliseconds. */
export function lengthOf(text: string): number | undefined {
  const [, amount = "", unit = ""] = /^(\d+)([smhd])$/.exec(text) ?? [];
  return unit === "" ? undefined : Number(amount) * (UNITS[unit] as number);
}

/** A moment as the API has it: given as one, as a date, or as how long ago (`2h`). */
export function momentOf(text: string, option: string, now = Date.now()): string {
  const ago = lengthOf(text);
  const at = ago === undefined ? Date.parse(text) : now - ago;
  if (!Number.isNaN(at)) return new Date(at).toISOString();
  throw new UsageError(`${option} ${text} is not a time. Write 2h or 15m for that long ago, or 2026-11-21T08:00:00Z.`);
}

/** A future moment as the API has it: given as a length from now (`30d`), or as a date. */
export function endOf(when: string, option: string): string {
  const length = lengthOf(when);
  const at = length === undefined ? Date.parse(when) : Date.now() + length;
  if (Number.isNaN(at)) throw new UsageError(`${option} ${when} is not a duration or a date. Use 30d or 2027-03-01.`);
  return new Date(at).toISOString();
}

// Written by hand, as the data of a locale costs a tenth of a command's start.
function two(value: number): string {
  return String(value).padStart(2, "0");
}
function dayOf(at: Date): string {
  return `${at.getFullYear()}-${two(at.getMonth() + 1)}-${two(at.getDate())}`;
}
function clockOf(at: Date): string {
  return `${two(at.getHours())}:${two(at.getMinutes())}:${two(at.getSeconds())}`;
}

/** A moment for a table: the time of day today, else the date and the time. */
export function shortTime(moment: string | null | undefined, now = new Date()): string {
  if (!moment) return "–";
  const at = new Date(moment);
  return dayOf(at) === dayOf(now) ? clockOf(at) : `${dayOf(at)} ${clockOf(at).slice(0, 5)}`;
}

/** The time from now to a moment, in its two largest units: `14h 5m`. */
export function spanTo(moment: string, now = Date.now()): string {
  const minutes = Math.ceil(Math.max(Date.parse(moment) - now, 0) / 60_000);
  const [days, hours, rest] = [Math.floor(minutes / 1_440), Math.floor(minutes / 60) % 24, minutes % 60];
  if (days > 0) return `${days}d ${hours}h`;
  return hours > 0 ? `${hours}h ${rest}m` : `${rest}m`;
}

/** A number with its noun: `1 event`, `2 events`. */
export function count(many: number, noun: string): string {
  return `${many} ${noun}${many === 1 ? "" : "s"}`;
}

/** The text of an argument: itself, of a file (`@name`), or of standard input (`-`). */
export function textOf(argument: string): string {
  if (argument === "-") return files.readFileSync(0, "utf8");
  if (!argument.startsWith("@")) return argument;
  return readFile(argument.slice(1));
}

/** The text of a file. Says in a sentence why it cannot be read. */
export function readFile(file: string): string {
  try {
    return files.readFileSync(file, "utf8");
  } catch (error) {
    throw new UsageError(`${file} cannot be read: ${fileFault(error)}.`);
  }
}

const FAULTS: Record<string, string> = {
  EACCES: "permission denied",
  EEXIST: "it already exists",
  EISDIR: "it is a folder",
  ENOENT: "it does not exist",
  ENOSPC: "the disk is full",
  ENOTDIR: "a part of its path is not a folder",
  EPERM: "permission denied",
  EROFS: "the disk is read-only",
  NOT_REGULAR: "it is not a regular file",
  TOO_LARGE: "it is larger than 1 MiB",
};

/** The reason why a file cannot be read or written. */
export function fileFault(error: unknown): string {
  const { code, message } = error as NodeJS.ErrnoException;
  return FAULTS[code ?? ""] ?? code ?? message;
}

/** Refuses a new file in a folder that does not exist. */
export function needFolderOf(file: string): void {
  const { dirname, resolve } = process.getBuiltinModule("node:path");
  const folder = dirname(resolve(file));
  if (!files.existsSync(folder)) throw new UsageError(`The folder ${folder} does not exist.`, `mkdir -p ${folder}`);
}

export function jsonOf(text: string, what: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new UsageError(`${what} is not JSON: ${(error as Error).message}.`);
  }
}

/**
 * Fields of `name=value` pairs. A value that is JSON is that value, any other is text; `name:=value` must be JSON, and `name=@file` is the
 * text of a file. `texts` are the names whose values stay text.
 */
export function fieldsOf(
  pairs: readonly string[],
  isText: (name: string) => boolean = () => false,
): Record<string, unknown> {
  return Object.fromEntries(
    pairs.map((pair) => {
      const [, name = "", sign, value = ""] = /^([^=:]+)(:?=)([\s\S]*)$/.exec(pair) ?? [];
      if (name === "") throw new UsageError(`${pair} is not a field. Write name=value.`);
      if (sign === ":=") return [name, jsonOf(value, `The value of ${name}`)];
      const text = value.startsWith("@") ? readFile(value.slice(1)) : value;
      return [name, isText(name) ? text : looseValue(text)];
    }),
  );
}

function looseValue(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

/** The headers of `name: value` texts. */
export function headersOf(given: readonly string[]): Record<string, string> {
  return Object.fromEntries(
    given.map((header) => {
      const [, name = "", value = ""] = /^([^:\s]+):\s*(.*)$/.exec(header) ?? [];
      if (name === "") throw new UsageError(`${header} is not a header. Write 'name: value'.`);
      return [name.toLowerCase(), value];
    }),
  );
}
