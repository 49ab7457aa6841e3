import { existsSync, mkdtempSync, readdirSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

/** The library that changes the time of day of a process; undefined if it is not installed. */
function findLibrary(): string | undefined {
  return ["/usr/lib", "/usr/local/lib", "/usr/lib64"]
    .flatMap((folder) => [folder, ...(existsSync(folder) ? subfoldersOf(folder) : [])])
    .map((folder) => join(folder, "faketime/libfaketimeMT.so.1"))
    .find((path) => existsSync(path));
}

function subfoldersOf(folder: string): string[] {
  return readdirSync(folder, { withFileTypes: true }).flatMap((entry) =>
    entry.isDirectory() && entry.name.includes("linux") ? [join(folder, entry.name)] : [],
  );
}

const library = process.platform === "linux" ? findLibrary() : undefined;

/** The reason why processes cannot have their own clock here; undefined if they can. */
export function whyNoClock(): string | undefined {
  return library ? undefined : "libfaketime is not installed (Debian: apt-get install faketime)";
}

/** A clock for processes that are started with its `env`: their time of day follows it immediately. Timers and monotonic time do not change. */
export function createWallClock() {
  const folder = mkdtempSync(join(tmpdir(), "gateway-clock-"));
  const file = join(folder, "now");
  // Replaced atomically: a process may read it at any time.
  const write = (text: string) => {
    writeFileSync(`${file}.new`, `${text}\n`);
    renameSync(`${file}.new`, file);
  };
  write("+0");
  return {
    env: {
      LD_PRELOAD: library ?? "",
      FAKETIME_TIMESTAMP_FILE: file,
      // Without these Node hangs when the clock is set back.
      FAKETIME_DONT_FAKE_MONOTONIC: "1",
      FAKETIME_NO_CACHE: "1",
    },
    /** The offset from the true time, which continues to run. */
    jumpTo: (offsetMs: number) => write(`${offsetMs < 0 ? "-" : "+"}${Math.abs(offsetMs) / 1_000}`),
    /** It is stopped. */
    stop: () => write(new Date().toISOString().slice(0, 19).replace("T", " ")),
    [Symbol.dispose]: () => rmSync(folder, { recursive: true, force: true }),
  };
}

export type WallClock = ReturnType<typeof createWallClock>;
