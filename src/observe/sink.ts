import fs from "node:fs";
import net from "node:net";
import tty from "node:tty";

/**
 * Where text goes without the caller ever waiting. One write at a time: the next one begins after `done` of the last, and until then
 * the bytes are the sink's. `done` is never called before `write` returns.
 */
export interface Sink {
  write(bytes: Buffer, done: (error?: Error | null) => void): void;
  /** Gives up what is being written, so that it cannot keep the process alive. */
  close(): void;
}

/** How long a terminal that takes nothing (Ctrl-S) is left alone before the next try. */
const RETRY_MS = 25;

/**
 * The descriptor opened once more, non-blocking. The flag belongs to the open file, which the descriptor we were given
 * shares with other processes; this one is ours alone.
 */
const reopened = (fd: number): number | undefined => {
  const { O_WRONLY, O_NONBLOCK, O_NOCTTY } = fs.constants;
  try {
    return fs.openSync(`/proc/self/fd/${fd}`, O_WRONLY | O_NONBLOCK | O_NOCTTY);
  } catch {
    return undefined; // a socket, no /proc, or a terminal of another user
  }
};

/**
 * Pipes and sockets: the event loop writes them and waits for their reader. `fs.write` would park a thread of the pool
 * at a stalled pipe, and the process could not exit for it.
 */
const streamSink = (stream: NodeJS.WritableStream & { destroy?(): unknown }): Sink => {
  // Every failed write is told to its own callback; the event has nothing to add, but unheard it would end the process.
  stream.on("error", () => {});
  return {
    write: (bytes, done) => {
      stream.write(bytes, done);
    },
    close: () => {
      stream.destroy?.();
    },
  };
};

/** Files, terminals and devices. A file's write is done by a thread of the pool: a slow disk stops no door. */
const fileSink = (fd: number, ours: boolean): Sink => {
  let closed = false;
  const writeAll = (bytes: Buffer, done: (error?: Error | null) => void): void => {
    if (closed) {
      done(new Error("The log is closed"));
      return;
    }
    fs.write(fd, bytes, (error, written) => {
      const rest = bytes.subarray(written ?? 0);
      if (error?.code === "EAGAIN") setTimeout(writeAll, RETRY_MS, bytes, done).unref();
      else if (error || rest.length === 0) done(error);
      else writeAll(rest, done);
    });
  };
  return {
    write: writeAll,
    close: () => {
      closed = true;
      if (ours) fs.close(fd, () => {});
    },
  };
};

/** The sink for a descriptor, by what it is: a pipe, a socket, a terminal, a file. */
export const openSink = (fd: number): Sink => {
  const stat = fs.fstatSync(fd);
  if (stat.isFIFO() || stat.isSocket()) {
    const own = reopened(fd);
    if (own !== undefined) return streamSink(new net.Socket({ fd: own, readable: false, writable: true }));
    // Node lets one stream have a descriptor: where it cannot be opened again, the process's own streams are shared.
    // Those cannot be closed: with one stalled, only `process.exit` ends the process.
    if (fd === 1) return streamSink(process.stdout);
    if (fd === 2) return streamSink(process.stderr);
    return streamSink(new net.Socket({ fd, readable: false, writable: true }));
  }
  const own = tty.isatty(fd) ? reopened(fd) : undefined;
  return fileSink(own ?? fd, own !== undefined);
};

/** A sink that hands the text to a function, which takes it at once. */
export const callbackSink = (write: (text: string) => void): Sink => ({
  write: (bytes, done) => {
    try {
      write(bytes.toString("utf8"));
      queueMicrotask(done);
    } catch (error) {
      queueMicrotask(() => done(error as Error));
    }
  },
  close: () => {},
});
