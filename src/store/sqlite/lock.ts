import { existsSync, statSync } from "node:fs";
import { type Driver, openDriver } from "./file.ts";

/** Holds a file for this process: a lock of the operating system, which ends with the process, however that ends. */
type FileLock = {
  /** Before the file is opened again: it is there, and nobody else has it. Throws, in a sentence, where that is not so. */
  renew(): void;
  release(): void;
};

/** The lock is on a file beside it. The database itself is left unlocked, so that it can be backed up meanwhile. */
export function lockFile(path: string): FileLock {
  const lock = `${path}.lock`;
  let driver = take(path, lock);
  let held = identityOf(lock);
  return {
    renew: () => {
      // To open it would make an empty one, without the data that was acknowledged.
      if (!existsSync(path)) throw new Error(`The SQLite file ${path} does not exist.`);
      if (held !== undefined && identityOf(lock) === held) return;
      // The disk, or the file, was replaced: others would lock another file than the one that is held.
      const next = take(path, lock);
      close(driver);
      [driver, held] = [next, identityOf(lock)];
    },
    release: () => driver.close(),
  };
}

function take(path: string, lock: string): Driver {
  try {
    const driver = openDriver(lock);
    driver.exec("BEGIN EXCLUSIVE");
    return driver;
  } catch (error) {
    if (!(error instanceof Error)) throw error;
    const code = "code" in error ? String(error.code) : "";
    const of = (why: string) => new Error(`The SQLite file ${path} ${why}`, { cause: error });
    if (code === "SQLITE_BUSY") throw of(`is in use by another gateway: it holds ${lock}.`);
    if (code.startsWith("SQLITE_") || error.message.startsWith("ConnectionFailed")) {
      throw of(`cannot be locked: ${lock} cannot be written. Its folder is missing or read-only, or the disk is full.`);
    }
    throw error;
  }
}

/** The identity of a file. Another file that gets its name later has another identity. */
function identityOf(file: string): string | undefined {
  const found = statSync(file, { bigint: true, throwIfNoEntry: false });
  return found && `${found.dev}:${found.ino}`;
}

/** Closes the driver of a lock file, even if its disk is gone. */
function close(driver: Driver): void {
  try {
    driver.close();
  } catch {
    // It holds nothing any more that somebody could want.
  }
}
