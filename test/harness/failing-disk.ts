import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { open, readFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";

const LIBRARIES = ["/usr/lib/fiu/fiu_run_preload.so", "/usr/lib/fiu/fiu_posix_preload.so"];

/** The reason why processes cannot have a failing disk; undefined if they can. */
export function whyNoFailingDisk(): string | undefined {
  return LIBRARIES.every((path) => existsSync(path))
    ? undefined
    : "libfiu is not installed (Debian: apt-get install fiu-utils)";
}

/** A system call that can fail. */
type DiskFault = "sync/*" | "rw/write" | "rw/pwrite";

/** Makes system calls to the disk fail in processes that are started with its `env`. */
export function createFailingDisk() {
  const folder = mkdtempSync(join(tmpdir(), "gateway-disk-"));
  const prefix = join(folder, "ctrl");
  const tell = async (pid: number, command: string): Promise<void> => {
    const pipe = `${prefix}-${pid}`;
    const input = await open(`${pipe}.in`, "w");
    await input.write(`${command}\n`);
    await input.close();
    const answer = await readFile(`${pipe}.out`, "utf8");
    if (answer.trim() !== "0") throw new Error(`libfiu answered ${answer} to: ${command}`);
  };
  return {
    env: { LD_PRELOAD: LIBRARIES.join(" "), FIU_CTRL_FIFO: prefix, FIU_ENABLE: "" },
    /** From now on these calls fail with an I/O error; with `chance`, only some of them. */
    fail: (pid: number, fault: DiskFault, chance = 1) =>
      tell(pid, `enable_random name=posix/io/${fault},probability=${chance},failinfo=5`),
    restore: (pid: number, fault: DiskFault) => tell(pid, `disable name=posix/io/${fault}`),
    [Symbol.dispose]: () => rmSync(folder, { recursive: true, force: true }),
  };
}

export type FailingDisk = ReturnType<typeof createFailingDisk>;
