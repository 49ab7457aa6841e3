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

/** Lines are gathered so long, or to so many bytes, for one write: a write a tick costs more than the lines. */
const GATHER_MS = 20;
/** The same while they come fast: the write before had so many. Each write wakes a thread, and this one once more. */
const GATHER_FAST_MS = 50;
const FAST = 10;
const ENOUGH = 131_072;
/** What a character takes at most. */
const MOST_BYTES = 3;

interface Needs {
  sink: Sink;
  /** Of all lines that are kept, those being written included. */
  maxBytes: number;
  /** The last look at a text before it is written. */
  clean(text: string): string;
  /** The line that tells of a gap. */
  dropLine(lines: number, total: number): string;
}

/** Lines that are written together. */
type Gathered = { bytes: Buffer; used: number; lines: number };

/**
 * Lines on their way to a reader that may be slow, or stalled. One write is under way at a time, and all lines that come
 * meanwhile are the next ones. Past the limit the newest lines are dropped: what was kept stays whole and in order. Lines are kept as bytes:
 * texts that are put together piece by piece would be moved about by the garbage collector as long as they wait.
 */
export const createLineBuffer = ({ sink, maxBytes, clean, dropLine }: Needs): LineBuffer => {
  const full: Gathered[] = [];
  let current: Gathered = open(ENOUGH);
  let spare: Buffer | undefined;
  let heldBytes = 0;
  let heldLines = 0;
  let lastLines = 0;
  let writing = false;
  let timer: NodeJS.Timeout | undefined;
  let closed = false;
  let dropped = 0;
  let reported = 0;
  const onIdle: Array<() => void> = [];

  const takeRoom = (): Gathered => {
    const taken = open(ENOUGH, spare);
    spare = undefined;
    return taken;
  };

  const keep = (line: string): void => {
    const room = line.length * MOST_BYTES;
    if (current.used + room > current.bytes.length) {
      if (current.lines > 0) full.push(current);
      current = room <= ENOUGH ? takeRoom() : open(room);
    }
    const bytes = current.bytes.write(line, current.used);
    if (heldBytes + bytes > maxBytes) {
      dropped++;
      return;
    }
    current.used += bytes;
    current.lines++;
    heldBytes += bytes;
    heldLines++;
    next();
  };

  const next = (): void => {
    if (writing) return;
    if (heldLines === 0) for (const wake of onIdle.splice(0)) wake();
    else if (full.length > 0 || onIdle.length > 0) write();
    else timer ??= setTimeout(write, lastLines < FAST ? GATHER_MS : GATHER_FAST_MS);
  };

  const write = (): void => {
    clearTimeout(timer);
    timer = undefined;
    if (closed) return;
    writing = true;
    const gathered = full.shift() ?? current;
    if (gathered === current) current = takeRoom();
    const { bytes, used, lines } = gathered;
    lastLines = lines;
    const text = bytes.toString("utf8", 0, used);
    const cleaned = clean(text);
    sink.write(cleaned === text ? bytes.subarray(0, used) : Buffer.from(cleaned), (error) => {
      writing = false;
      heldBytes -= used;
      heldLines -= lines;
      if (bytes.length === ENOUGH) spare = bytes;
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
    keep(line);
  };

  return {
    add: (line) => {
      if (closed) dropped++;
      else keep(line);
    },
    flush: (deadlineMs) => {
      if (heldLines === 0) return Promise.resolve(true);
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
      dropped += heldLines;
      sink.close();
    },
  };
};

const open = (size: number, bytes: Buffer = Buffer.allocUnsafeSlow(size)): Gathered => ({ bytes, used: 0, lines: 0 });
