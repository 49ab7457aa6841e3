import { spawnSync } from "node:child_process";
import { join } from "node:path";
import { root } from "#test/harness/process.ts";

/** The output of a type checker for the Python code in a folder with the checker's settings. */
export function checkPython(folder: string): string {
  const pyright = join(root, "node_modules/pyright/index.js");
  return spawnSync(process.execPath, [pyright, "-p", folder], { encoding: "utf8" }).stdout;
}
