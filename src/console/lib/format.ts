const rtf = new Intl.RelativeTimeFormat("en", { numeric: "auto", style: "narrow" });
const UNITS = [
  ["day", 86_400_000],
  ["hour", 3_600_000],
  ["minute", 60_000],
  ["second", 1_000],
] as const;

/** The age of a time, or the time until it, in words. */
export function relative(at: number, now: number): string {
  const away = at - now;
  if (Math.abs(away) < 1_000) return "now";
  for (const [unit, ms] of UNITS) if (Math.abs(away) >= ms) return rtf.format(Math.trunc(away / ms), unit);
  return "now";
}

/** A length of time in at most two units: `12 ms`, `3.4 s`, `2 m 05 s`, `2 h 14 m`, `3 d 4 h`. */
export function duration(ms: number): string {
  if (!Number.isFinite(ms)) return "–";
  if (ms < 1_000) return `${Math.round(ms)} ms`;
  if (ms < 60_000) return `${(ms / 1_000).toFixed(ms < 10_000 ? 1 : 0)} s`;
  const pair = (large: number, small: number, [one, other]: readonly [string, string]) =>
    `${Math.floor(ms / large)} ${one} ${String(Math.floor((ms % large) / small)).padStart(2, "0")} ${other}`;
  if (ms < 3_600_000) return pair(60_000, 1_000, ["m", "s"]);
  if (ms < 86_400_000) return pair(3_600_000, 60_000, ["h", "m"]);
  return pair(86_400_000, 3_600_000, ["d", "h"]);
}

/** A length of time in its largest unit, for prose: `45 s`, `30 min`, `2 h`. */
export function about(ms: number): string {
  const [name, unit] = ROUGH.find(([, least]) => ms >= least) ?? ["ms", 1];
  return `${Math.round(ms / unit)} ${name}`;
}
const ROUGH = [
  ["d", 86_400_000],
  ["h", 3_600_000],
  ["min", 60_000],
  ["s", 1_000],
] as const;

export function bytes(count: number): string {
  if (count < 1_024) return `${count} B`;
  if (count < 1_048_576) return `${(count / 1_024).toFixed(count < 10_240 ? 1 : 0)} kB`;
  return `${(count / 1_048_576).toFixed(1)} MB`;
}

const counts = new Intl.NumberFormat("en");
export function count(value: number): string {
  return counts.format(value);
}

/** An amount of money, whose currency the configuration leaves open. Small ones keep their digits. */
export function money(value: number): string {
  return value.toFixed(value < 1 ? 4 : 2);
}

const shortCounts = new Intl.NumberFormat("en", { notation: "compact" });
/** A number in little room: `1.2M`. */
export function shortCount(value: number): string {
  return shortCounts.format(value);
}

export function plural(value: number, one: string, many = `${one}s`): string {
  return `${count(value)} ${value === 1 ? one : many}`;
}

/** The exact time, in the reader's zone or in UTC. */
export function exact(at: number, isUtc: boolean): string {
  return (
    new Intl.DateTimeFormat("en-GB", {
      dateStyle: "medium",
      timeStyle: "medium",
      ...(isUtc && { timeZone: "UTC" }),
    }).format(at) + (isUtc ? " UTC" : "")
  );
}

/** The time of day without the date. */
export function clockTime(at: number, isUtc: boolean): string {
  return new Intl.DateTimeFormat("en-GB", {
    hour: "2-digit",
    minute: "2-digit",
    second: "2-digit",
    ...(isUtc && { timeZone: "UTC" }),
  }).format(at);
}

/** A JSON text with a line for each value; any other text, and numbers that would change, unchanged. */
export function pretty(text: string): string {
  try {
    const value: unknown = JSON.parse(text);
    const written = text.replace(/("(?:[^"\\]|\\.)*")|\s+/g, "$1");
    return JSON.stringify(value) === written ? JSON.stringify(value, null, 2) : text;
  } catch {
    return text;
  }
}
