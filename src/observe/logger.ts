import { isatty } from "node:tty";
import { createLineBuffer } from "#observe/line-buffer.ts";
import { localTime, prettyLine } from "#observe/pretty.ts";
import { createRedactor, isSecretKey } from "#observe/redact.ts";
import { type Budget, jsonOf, memberOf, quote } from "#observe/safe-json.ts";
import { callbackSink, openSink } from "#observe/sink.ts";

const rank = { debug: 0, info: 1, warn: 2, error: 3 };
export type Level = keyof typeof rank;

export interface LoggerOptions {
  level: Level;
  /** The descriptor to write to; 1 unless told. */
  fd?: number;
  /** Takes the text instead of a descriptor. */
  write?: (text: string) => void;
  /** Lines of JSON, or short lines for people; unless told, people get theirs on a terminal. */
  format?: "json" | "pretty";
  /** False keeps colours off a terminal. */
  colour?: boolean;
  /** So many bytes wait for a reader that does not read; past that, lines are dropped and counted. */
  maxBufferedBytes?: number;
  maxStringChars?: number;
  maxLineChars?: number;
  now?: () => number;
}

export interface Logger extends AsyncDisposable {
  /** Writes one line. Never waits, never throws; a field that is undefined is left out. */
  log(level: Level, event: string, fields?: object): void;
  /** Whether lines of this level are written: who would have to make one for nothing can ask. */
  writes(level: Level): boolean;
  /** From now on these secrets appear in no line. */
  hide(secrets: Iterable<string>): void;
  /** The text with every such secret replaced, for whatever else is kept of requests. */
  hideIn(text: string): string;
  /** Waits until no line is left to write, at most so long; says whether none is. */
  flush(deadlineMs?: number): Promise<boolean>;
  /** How many lines were dropped since the start. */
  dropped(): number;
}

const FLUSH_MS = 500;
const MOST_KEYS = 1000;
const TIME = '{"time":"';

/** Structured lines to one descriptor, all lines of a tick in one write. */
export const createLogger = (options: LoggerOptions): Logger => {
  const { level: lowest, fd = 1, write, maxBufferedBytes = 1 << 20, now = Date.now } = options;
  const { maxStringChars = 4096, maxLineChars = 32_768 } = options;
  const pretty = (options.format ?? (!write && isatty(fd) ? "pretty" : "json")) === "pretty";
  const colour = options.colour !== false && !write && isatty(fd);
  const redactor = createRedactor();
  const sink = write ? callbackSink(write) : openSink(fd);

  let lastMs = Number.NaN;
  let lastTime = "";
  const timeOf = (ms: number): string => {
    if (ms === lastMs) return lastTime;
    lastMs = ms;
    lastTime = pretty ? localTime(ms) : new Date(ms).toISOString();
    return lastTime;
  };

  // The beginning of each member, `,"key":`, or null for the name of a secret. Few names exist, so few are kept.
  const members = new Map<string, string | null>();
  const memberStart = (key: string): string | null => {
    const known = members.get(key);
    if (known !== undefined) return known;
    const free = key === "time" || key === "level" || key === "event" ? `_${key}` : key;
    const start = isSecretKey(key) ? null : `,${quote(free)}:`;
    if (members.size < MOST_KEYS) members.set(key, start);
    return start;
  };

  const cut = (value: string, at: number) => redactor.text(value.slice(0, at + redactor.longest())).slice(0, at);

  // What follows the time. As few as there are events.
  const starts: Record<Level, Map<string, string>> = {
    debug: new Map(),
    info: new Map(),
    warn: new Map(),
    error: new Map(),
  };
  const startOf = (level: Level, event: string): string => {
    const known = starts[level].get(event);
    if (known !== undefined) return known;
    const start = `","level":"${level}","event":${quote(event)}`;
    if (starts[level].size < MOST_KEYS) starts[level].set(event, start);
    return start;
  };

  const jsonLine = (time: string, level: Level, event: string, fields: object, budget: Budget): string => {
    let line = TIME + time + startOf(level, event);
    for (const key of Object.keys(fields)) {
      const value = (fields as Record<string, unknown>)[key];
      if (value === undefined) continue;
      const start = memberStart(key);
      line += start === null ? `,${quote(key)}:${memberOf(key, value, budget)}` : start + jsonOf(value, budget);
    }
    return `${line}}\n`;
  };

  const writeLine = pretty
    ? (time: string, level: Level, event: string, fields: object, budget: Budget) =>
        prettyLine({ time, level, event, fields, colour }, budget)
    : jsonLine;
  const lineOf = (level: Level, event: string, fields: object): string => {
    const budget = { left: maxLineChars, perString: maxStringChars, cut };
    try {
      return writeLine(timeOf(now()), level, event, fields, budget);
    } catch {
      return writeLine(lastTime, level, event, { unreadable: true }, budget);
    }
  };

  /** The reader reads again: this line says what it missed. */
  const dropLine = (lines: number, total: number) => lineOf("warn", "log.dropped", { lines, total });

  const clean = (text: string): string => {
    if (!redactor.finds(text)) return text;
    const lines = text.split("\n");
    return lines.map((line) => (pretty ? redactor.text(line) : redactor.jsonLine(line))).join("\n");
  };

  const buffer = createLineBuffer({ sink, maxBytes: maxBufferedBytes, clean, dropLine });

  return {
    log: (level, event, fields = {}) => {
      if (rank[level] >= rank[lowest]) buffer.add(lineOf(level, event, fields));
    },
    writes: (level) => rank[level] >= rank[lowest],
    hide: redactor.hide,
    hideIn: redactor.text,
    flush: (deadlineMs = FLUSH_MS) => buffer.flush(deadlineMs),
    dropped: buffer.dropped,
    [Symbol.asyncDispose]: async () => {
      await buffer.flush(FLUSH_MS);
      buffer.close();
    },
  };
};
