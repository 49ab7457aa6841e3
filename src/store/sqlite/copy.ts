import { renameSync, rmSync, statSync } from "node:fs";
import { newBareId } from "#kit/ids.ts";
import { makeOwn, openDriver } from "./file.ts";

/**
 * Copies the store in the file `from` to the new file `to`, as it is at one moment. A gateway that works with it goes on meanwhile. The
 * copy counts as another store: places in streams that were given out after it are not taken for ones of its own. Answers its size.
 */
export async function copyStore(from: string, to: string, now: number): Promise<number> {
  // Under another name until it is whole and on disk.
  const partial = `${to}.partial`;
  rmSync(partial, { force: true });
  try {
    const driver = openDriver(from);
    try {
      driver.exec("PRAGMA busy_timeout = 10000");
      makeOwn(partial);
      driver.prepare("VACUUM INTO ?").run([partial]);
    } finally {
      driver.close();
    }
    const copy = openDriver(partial);
    try {
      copy.exec("PRAGMA synchronous = FULL");
      copy.prepare("UPDATE meta SET value = ? WHERE name = 'epoch'").run([newBareId(now)]);
    } finally {
      copy.close();
    }
    renameSync(partial, to);
    return statSync(to).size;
  } finally {
    for (const rest of ["", "-journal", "-wal", "-shm"]) rmSync(partial + rest, { force: true });
  }
}
