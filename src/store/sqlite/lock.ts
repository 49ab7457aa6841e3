import { type Driver, openDriver } from "./driver.ts";

/**
 * Holds the file for this process: a lock of the operating system on a file beside it, which ends with the process, however that ends.
 * The database itself is left unlocked, so that it can be backed up meanwhile. The returned function gives it back.
 */
export const lockFile = (path: string): (() => void) => {
  const lock = `${path}.lock`;
  let driver: Driver;
  try {
    driver = openDriver(lock);
    driver.exec("BEGIN EXCLUSIVE");
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
  return () => driver.close();
};
