import { watch } from "node:fs";

export type Watcher = { close(): void };

/** The pause between two looks at a folder that is not watched. */
const POLL_MS = 2_000;
/** This many changes in this time are others' work, as that of a database whose file lies beside ours. */
const MANY = 100;
const WITHIN_MS = 1_000;

const pollFolder = (look: () => void): Watcher => {
  const interval = setInterval(look, POLL_MS).unref();
  return { close: () => clearInterval(interval) };
};

/**
 * Calls `look` at once when something in a folder changes; every two seconds where that cannot be told (no descriptors left, a strange file
 * system), or is told all the time: being told costs every write in the folder several microseconds, whoever makes it.
 */
export const watchFolder = (folder: string, look: () => void, poll = pollFolder): Watcher => {
  let changes = 0;
  let since = performance.now();
  let isClosed = false;
  let watcher: Watcher;
  const goOver = () => {
    if (isClosed) return;
    watcher.close();
    watcher = poll(look);
  };
  try {
    const told = watch(folder, { persistent: false }, () => {
      const now = performance.now();
      if (now - since > WITHIN_MS) [changes, since] = [0, now];
      if (++changes === MANY) goOver();
      look();
    });
    told.on("error", goOver);
    watcher = told;
  } catch {
    watcher = poll(look);
  }
  return {
    close() {
      isClosed = true;
      watcher.close();
    },
  };
};
