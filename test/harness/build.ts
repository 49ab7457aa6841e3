import { spawnSync } from "node:child_process";
import { existsSync, readdirSync, statSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("../../", import.meta.url));
const INPUTS = ["specs", "src", "generated", "scripts", "docs", "package.json"];

/** Builds dist/ and the generated files that are not committed, once per run, if they are older than their sources. */
export function setup(): void {
  if (!isStale()) return;
  const { status, stderr } = spawnSync(process.execPath, ["--import", "tsx", "scripts/build.ts"], {
    cwd: root,
    encoding: "utf8",
  });
  if (status !== 0) throw new Error(`the build failed; "npm run build" shows it\n${stderr}`);
}

/** True if the build is missing, or older than its sources. */
export function isStale(): boolean {
  const built = join(root, "dist/main.js");
  const isWhole = [built, join(root, "generated/validators/hooks.js")].every((path) => existsSync(path));
  return !isWhole || newest(INPUTS.map((path) => join(root, path))) > statSync(built).mtimeMs;
}

function newest(paths: string[]): number {
  return Math.max(...paths.map((path) => changedAt(path)));
}

function changedAt(path: string): number {
  return statSync(path).isDirectory()
    ? newest(readdirSync(path).map((name) => join(path, name)))
    : statSync(path).mtimeMs;
}
