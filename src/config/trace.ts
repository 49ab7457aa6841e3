import { stat } from "node:fs/promises";

/** What tells one version of a file from another, without reading it. */
export async function traceOf(file: string): Promise<string> {
  const found = await stat(file, { bigint: true }).catch(() => undefined);
  return found ? `${found.dev}:${found.ino}:${found.size}:${found.mtimeNs}` : "none";
}

/** The traces of files, by their path. Taken before they are read, so that a change in between is seen as one. */
export async function tracesOf(files: readonly string[]): Promise<Record<string, string>> {
  return Object.fromEntries(await Promise.all(files.map(async (file) => [file, await traceOf(file)] as const)));
}
