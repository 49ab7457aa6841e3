import { isatty } from "node:tty";
import { visible } from "#kit/visible.ts";
import { createLogWriter, type LogWriter } from "#observe/log-writer.ts";
import { loggableMember } from "#observe/loggable.ts";
import { localTime, prettyLine } from "#observe/pretty.ts";
import { createRedactor } from "#observe/redact.ts";

const rank = { debug: 0, info: 1, warn: 2, error: 3 };
export type Level = keyof typeof rank;

export interface LoggerOptions {
  level: Level;
  /** The descriptor to write to; 1 by default. */
  fd?: number;
  /** Takes each line instead of a descriptor. */
  write?: (line: string) => void;
  /** JSON lines, or short lines for people; by default short lines on a terminal. */
  format?: "json" | "pretty" | undefined;
  /** False switches colours off on a terminal. */
  colour?: boolean;
  /** This many bytes wait for a reader that does not read; past that, lines are dropped and counted. */
  maxBufferedBytes?: number;
  maxStringChars?: number;
  maxLineChars?: number;
  now?: () => number;
}

export interface Logger extends AsyncDisposable {
  /** Writes one line. Never waits, never throws; a field that is undefined is left out. */
  log(level: Level, event: string, fields?: object): void;
  /** True if lines of this level are written. A caller need not make the fields of one for nothing. */
  writes(level: Level): boolean;
  /** From now on these secrets appear in no line. */
  hide(secrets: Iterable<string>): void;
  /** The text with every such secret replaced, for records and answers; `hideInJson` takes JSON and returns valid JSON. */
  hideIn(text: string): string;
  hideInJson(json: string): string;
  /** Waits until all lines are written, for a limited time; returns true if they are. */
  flush(deadlineMs?: number): Promise<boolean>;
  /** How many lines were dropped since the start. */
  dropped(): number;
}

const FLUSH_MS = 500;
/** The members that every line has. A field of such a name gets another. */
const OWN = new Set(["time", "level", "event"]);

/** Structured lines to one descriptor. */
export function createLogger(options: LoggerOptions): Logger {
  const { level: lowest, fd = 1, write, maxBufferedBytes = 1 << 20, now = Date.now } = options;
  const { maxStringChars = 4096, maxLineChars = 32_768 } = options;
  const isPretty = (options.format ?? (!write && isatty(fd) ? "pretty" : "json")) === "pretty";
  const colour = options.colour !== false && !write && isatty(fd);
  const redactor = createRedactor();
  const cut = (value: string, at: number) => redactor.text(value.slice(0, at + redactor.longest())).slice(0, at);

  let lastMs = Number.NaN;
  let lastTime = "";
  const format = (level: Level, event: string, fields: object): string => {
    const budget = { left: maxLineChars, perString: maxStringChars, cut };
    const ms = now();
    if (isPretty) return redactor.text(prettyLine({ time: localTime(ms), level, event, colour }, fields, budget));
    if (ms !== lastMs) [lastMs, lastTime] = [ms, new Date(ms).toISOString()];
    const record: Record<string, unknown> = { time: lastTime, level, event };
    for (const key of Object.keys(fields)) {
      const value = (fields as Record<string, unknown>)[key];
      if (value !== undefined) record[OWN.has(key) ? `_${key}` : key] = loggableMember(key, value, budget);
    }
    return visible(redactor.jsonLine(`${JSON.stringify(record)}\n`));
  };
  const lineOf = (level: Level, event: string, fields: object): string => {
    try {
      return format(level, event, fields);
    } catch {
      return format(level, event, { unreadable: true });
    }
  };
  /** The reader reads again: this line reports the lines that it missed. */
  const dropLine = (lines: number, total: number) => lineOf("warn", "log.dropped", { lines, total });
  const writer: LogWriter = write
    ? { write, flush: async () => true, dropped: () => 0, close() {} }
    : createLogWriter({ fd, maxBytes: maxBufferedBytes, dropLine });

  return {
    log: (level, event, fields = {}) => {
      if (rank[level] >= rank[lowest]) writer.write(lineOf(level, event, fields));
    },
    writes: (level) => rank[level] >= rank[lowest],
    hide: redactor.hide,
    hideIn: redactor.text,
    hideInJson: redactor.jsonLine,
    flush: (deadlineMs = FLUSH_MS) => writer.flush(deadlineMs),
    dropped: writer.dropped,
    [Symbol.asyncDispose]: async () => {
      await writer.flush(FLUSH_MS);
      writer.close();
    },
  };
}
