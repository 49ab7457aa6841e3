import fs from "node:fs";
import tty from "node:tty";
import SonicBoom from "sonic-boom";

/** The destination of a log's lines. Lines above the limit are dropped and counted: the others are complete and in order. */
export interface LogWriter {
  /** Never waits and never throws. */
  write(line: string): void;
  /** Waits until no line is left to write, at most `deadlineMs`; returns whether none is left. */
  flush(deadlineMs: number): Promise<boolean>;
  /** How many lines were dropped since the start. */
  dropped(): number;
  /** Drops all lines that come from now on. */
  close(): void;
}

/** Lines are gathered for this long, or to this many bytes, for one write. */
const GATHER_MS = 20;
const GATHER_BYTES = 32 * 1024;
const WRITE_BYTES = 64 * 1024;
/** The pause before the next attempt to write to a reader that does not read; a broken one has a longer pause. */
const RETRY_MS = 10;
const BROKEN_MS = 1_000;

type Needs = {
  fd: number;
  maxBytes: number;
  /** The line that reports a gap. */
  dropLine: (lines: number, total: number) => string;
};

export function createLogWriter({ fd, maxBytes, dropLine }: Needs): LogWriter {
  const own = openWithoutWaiting(fd);
  const boom = new SonicBoom({
    fd: own ?? fd,
    minLength: GATHER_BYTES,
    maxWrite: WRITE_BYTES,
    maxLength: maxBytes,
    contentMode: "buffer",
    retryEAGAIN: () => false, // its own pause of 100 ms would drop lines of a busy gateway
  } as ConstructorParameters<typeof SonicBoom>[0]);
  let timer: NodeJS.Timeout | undefined;
  let waitingBytes = 0;
  let dropped = 0;
  let reported = 0;
  let isClosed = false;

  const write = (line: string): void => {
    if (isClosed) return void dropped++;
    const bytes = Buffer.from(line);
    waitingBytes += bytes.length;
    boom.write(bytes as never);
    flushIn(GATHER_MS);
  };
  const flushIn = (ms: number): void => {
    if (isClosed) return;
    timer ??= setTimeout(() => {
      timer = undefined;
      boom.flush();
    }, ms);
  };

  boom.on("drop", (bytes: string) => {
    waitingBytes -= bytes.length;
    dropped++;
  });
  // A failed write is tried again with the next lines, so that a full disk or a stalled reader loses nothing below the limit.
  boom.on("error", ({ code }: NodeJS.ErrnoException) => flushIn(code === "EAGAIN" ? RETRY_MS : BROKEN_MS));
  boom.on("write", (bytes) => {
    waitingBytes -= bytes;
    // A flush does nothing while a write is under way.
    if (waitingBytes > 0) flushIn(GATHER_MS);
    if (dropped === reported || isClosed) return;
    const line = dropLine(dropped - reported, dropped);
    reported = dropped;
    write(line);
  });

  const flushOnce = (): Promise<boolean> => new Promise((resolve) => boom.flush((error) => resolve(!error)));

  return {
    write,
    async flush(deadlineMs) {
      const until = performance.now() + deadlineMs;
      while (!isClosed) {
        const leftMs = until - performance.now();
        if (leftMs <= 0) return false;
        if (await Promise.race([flushOnce(), pause(leftMs)])) return true;
        await pause(RETRY_MS);
      }
      return true;
    },
    dropped: () => dropped,
    close() {
      isClosed = true;
      clearTimeout(timer);
      if (own !== undefined) boom.destroy();
    },
  };
}

function pause(ms: number): Promise<false> {
  return new Promise((resolve) => setTimeout(resolve, ms, false));
}

/**
 * A descriptor of our own for a pipe or a terminal, which does not make a thread wait for a stalled reader: the process could not exit for
 * it. The flag belongs to the open file, which other processes may share, so the file is opened once more. Undefined where that is
 * impossible or needless.
 */
function openWithoutWaiting(fd: number): number | undefined {
  const stat = fs.fstatSync(fd);
  if (stat.isSocket()) {
    // A socket cannot be opened again: Node's own stream for it sets the flag.
    if (fd === 1) void process.stdout;
    if (fd === 2) void process.stderr;
    return undefined;
  }
  if (!stat.isFIFO() && !tty.isatty(fd)) return undefined;
  const { O_WRONLY, O_NONBLOCK, O_NOCTTY } = fs.constants;
  try {
    return fs.openSync(`/proc/self/fd/${fd}`, O_WRONLY | O_NONBLOCK | O_NOCTTY);
  } catch {
    return undefined; // no /proc, or a terminal of another user
  }
}
