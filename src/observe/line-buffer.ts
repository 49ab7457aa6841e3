import type { Sink } from "#observe/sink.ts";

export interface LineBuffer {
  /** Takes a line, or drops it where the buffer is full. Never waits. */
  add(line: string): void;
  /** Waits until nothing is left to write, at most so long; says whether nothing is. */
  flush(deadlineMs: number): Promise<boolean>;
  dropped(): number;
  /** Drops what still waits, and all that comes. */
  close(): void;
}

/** Lines are gathered so long, or to so many characters, for one write: a write a tick costs more than the lines. */
const GATHER_MS = 5;
const ENOUGH = 65_536;

interface Needs {
  sink: Sink;
  /** Of all lines that are kept, those being written included. */
  maxBytes: number;
  /** The last look at a text before it is written. */
  clean(text: string): string;
  /** The line that tells of a gap. */
  dropLine(lines: number, total: number): string;
}

/**
 * Lines on their way to a reader that may be slow, or stalled. One write is under way at a time, and all lines that come
 * meanwhile are the next one. Past the limit the newest lines are dropped: what was kept stays whole and in order.
 */
export const createLineBuffer = ({ sink, maxBytes, clean, dropLine }: Needs): LineBuffer => {
  let waiting = "";
  let waitingLines = 0;
  let heldBytes = 0;
  let writing = false;
  let timer: NodeJS.Timeout | undefined;
  let closed = false;
  let dropped = 0;
  let reported = 0;
  const onIdle: Array<() => void> = [];

  const keep = (line: string, bytes: number): void => {
    waiting += line;
    waitingLines++;
    heldBytes += bytes;
    next();
  };

  const next = (): void => {
    if (writing) return;
    if (waitingLines === 0) for (const wake of onIdle.splice(0)) wake();
    else if (waiting.length >= ENOUGH || onIdle.length > 0) write();
    else timer ??= setTimeout(write, GATHER_MS);
  };

  const write = (): void => {
    clearTimeout(timer);
    timer = undefined;
    if (closed) return;
    writing = true;
    const text = clean(waiting);
    const lines = waitingLines;
    const bytes = heldBytes;
    waiting = "";
    waitingLines = 0;
    sink.write(text, (error) => {
      writing = false;
      heldBytes -= bytes;
      if (error) dropped += lines;
      else reportDrops();
      next();
    });
  };

  /** The gap lies after all that was kept, and so does its line. */
  const reportDrops = (): void => {
    if (dropped === reported) return;
    const line = dropLine(dropped - reported, dropped);
    reported = dropped;
    keep(line, Buffer.byteLength(line));
  };

  return {
    add: (line) => {
      const bytes = Buffer.byteLength(line);
      if (closed || heldBytes + bytes > maxBytes) dropped++;
      else keep(line, bytes);
    },
    flush: (deadlineMs) => {
      if (!writing && waitingLines === 0) return Promise.resolve(true);
      return new Promise((resolve) => {
        const deadline = setTimeout(() => resolve(false), deadlineMs);
        onIdle.push(() => {
          clearTimeout(deadline);
          resolve(true);
        });
        next();
      });
    },
    dropped: () => dropped,
    close: () => {
      closed = true;
      dropped += waitingLines;
      waiting = "";
      waitingLines = 0;
      sink.close();
    },
  };
};
