import { spawnSync } from "node:child_process";
import { join } from "node:path";
import { root } from "#test/harness/process.ts";

/** The words of a type checker about the Python code in a folder, which has the checker's settings. */
export function checkPython(folder: string): string {
  const pyright = join(root, "node_modules/pyright/index.js");
  return spawnSync(process.execPath, [pyright, "-p", folder], { encoding: "utf8" }).stdout;
}
