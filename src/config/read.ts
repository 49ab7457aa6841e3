import { readFile } from "node:fs/promises";
import { isAbsolute } from "node:path";
import { ConfigError } from "./problems.ts";

/** A configuration is written by people; what is larger is another file. */
const MAX_BYTES = 4 * 2 ** 20;

export async function readConfig(file: string): Promise<Uint8Array> {
  const refuse = (message: string) => new ConfigError([{ file, line: null, column: null, key: "", message }]);
  const bytes = await readFile(file).catch((error: unknown) => {
    throw refuse(`the file cannot be read: ${reasonOf(error)}`);
  });
  if (bytes.length > MAX_BYTES)
    throw refuse("the file is larger than 4 MiB, too large for a configuration: name another one.");
  return bytes;
}

/** A path as it was written, why nothing can be read there, and what to do. */
export function unreadable(written: string, error: unknown): string {
  const isLost = (error as NodeJS.ErrnoException).code === "ENOENT" && !isAbsolute(written);
  return `\`${written}\`, which cannot be read: ${reasonOf(error)}${isLost ? " It is looked for beside the configuration file." : ""}`;
}

/** Why a file cannot be read, and what to do. */
function reasonOf(error: unknown): string {
  const code = (error as NodeJS.ErrnoException).code ?? "";
  const reasons: Record<string, string> = {
    ENOENT: "it is not there. Create it, or name another one.",
    EACCES: "the gateway's user may not. Give that user the right to read it.",
    EPERM: "the gateway's user may not. Give that user the right to read it.",
    ENOTDIR: "it is not a folder, or not in one. Name another one.",
    EISDIR: "it is a folder. Name the file in it.",
    EMFILE: "too many files are open. Raise the limit, or try again when the load is less.",
  };
  return reasons[code] ?? `${code || "it failed"}. Look at the file and its disk.`;
}
