import { closeSync, existsSync, lstatSync, openSync, realpathSync, statSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, resolve } from "node:path";
import type Libsql from "libsql";

export type Driver = InstanceType<typeof Libsql>;

/** Makes a file that only its owner may read, where none is. SQLite gives the files beside a database the same mode. */
export function makeOwn(path: string): void {
  // Only a missing file is opened: closing an existing one would drop the locks that this process has on it.
  if (existsSync(path)) return;
  try {
    closeSync(openSync(path, "a", 0o600));
  } catch {
    // Whoever opens the database says why it cannot be made.
  }
}

/** The driver is CommonJS, and an optional dependency: it is loaded only where a store of this kind is opened. Makes the file where none is. */
export function openDriver(path: string): Driver {
  const Driver = createRequire(import.meta.url)("libsql") as typeof Libsql;
  makeOwn(path);
  return new Driver(path);
}

/** The path of the file behind a link: its log and its lock lie beside the file itself, under any name. */
export function behindLink(path: string): string {
  const isLink = lstatSync(path, { throwIfNoEntry: false })?.isSymbolicLink();
  return isLink && existsSync(path) ? realpathSync(path) : path;
}

/** The warning at a start about a file that others on this machine can read. The operator chose its mode: it stays. */
export function exposureOf(path: string): string | undefined {
  if (process.platform === "win32") return undefined;
  const open = [path, `${path}-wal`, `${path}-shm`].filter((file) => (modeOf(file) & 0o044) !== 0);
  if (open.length === 0 || !isReachable(path)) return undefined;
  return `Other users of this machine can read ${path}, which contains messages (mode ${modeOf(path).toString(8).padStart(4, "0")}). To restrict it to the gateway's user: chmod 600 ${open.join(" ")}`;
}

function modeOf(file: string): number {
  return (statSync(file, { throwIfNoEntry: false })?.mode ?? 0) & 0o777;
}

/** A folder that lets nobody else in keeps all that is below it. */
function isReachable(path: string): boolean {
  for (let folder = dirname(resolve(path)); ; folder = dirname(folder)) {
    if ((modeOf(folder) & 0o011) === 0) return false;
    if (folder === dirname(folder)) return true;
  }
}
