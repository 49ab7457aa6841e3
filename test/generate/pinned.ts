import { fork, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";

export const pinnedSpecs = "test/generate/fixtures/specs";
export const root = resolve(import.meta.dirname, "../..");

export type Run = { code: number | null; output: string };

/** Runs Node from the repository's top. */
function run(args: string[]): Promise<Run> {
  const child = spawn(process.execPath, args, { cwd: root });
  let output = "";
  child.stdout.on("data", (chunk) => {
    output += chunk;
  });
  child.stderr.on("data", (chunk) => {
    output += chunk;
  });
  return new Promise((done, fail) => {
    child.on("error", fail);
    child.on("close", (code) => done({ code, output }));
  });
}

export const runGenerate = (...args: string[]): Promise<Run> =>
  run(["--import", "tsx", "scripts/generate.ts", ...args]);

/** The same, run after run in one process: `using generator = startGenerator()`. */
export const startGenerator = () => {
  const child = fork("test/generate/run-again.ts", { cwd: root, execArgv: ["--import", "tsx"] });
  const ended = once(child, "exit").then(([code]) => Promise.reject(new Error(`the generator ended with ${code}`)));
  ended.catch(() => {});
  return {
    async run(...args: string[]): Promise<Run> {
      child.send(args);
      const [said] = await Promise.race([once(child, "message"), ended]);
      return said as Run;
    },
    [Symbol.dispose]: () => void child.kill(),
  };
};

export const runTsc = (...args: string[]): Promise<Run> => run(["node_modules/typescript/bin/tsc", ...args]);

/** A folder outside the repository from which the repository's packages can be imported. */
export function tempFolder() {
  const folder = mkdtempSync(join(tmpdir(), "generate-test-"));
  symlinkSync(join(root, "node_modules"), join(folder, "node_modules"));
  return { folder, [Symbol.dispose]: () => rmSync(folder, { recursive: true, force: true }) };
}
