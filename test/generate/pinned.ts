import { spawn } from "node:child_process";
import { mkdtempSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { createInterface } from "node:readline";

export const pinnedSpecs = "test/generate/fixtures/specs";
const root = resolve(import.meta.dirname, "../..");

type Run = { code: number | null; output: string };

/** Runs Node in the root of the repository. */
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

/** One generator for all tests of a process, because loading it takes longer than running it. It ends with the process. */
function createGenerator() {
  const child = spawn(process.execPath, ["--import", "tsx", join(import.meta.dirname, "generator.ts")], {
    cwd: root,
    stdio: ["pipe", "pipe", "inherit"],
  });
  const answers = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  return async (args: readonly string[]): Promise<Run> => {
    child.stdin.write(`${JSON.stringify(args)}\n`);
    const { done, value } = await answers.next();
    if (done) throw new Error("The generator ended before it answered; its output stands above.");
    return JSON.parse(value);
  };
}
let generator: ReturnType<typeof createGenerator> | undefined;

/** Runs `npm run generate` with these arguments. */
export function runGenerate(...args: string[]): Promise<Run> {
  generator ??= createGenerator();
  return generator(args);
}

export function runTsc(...args: string[]): Promise<Run> {
  return run(["node_modules/typescript/bin/tsc", ...args]);
}

/** A folder outside the repository from which the repository's packages can be imported. */
export function tempFolder() {
  const folder = mkdtempSync(join(tmpdir(), "generate-test-"));
  symlinkSync(join(root, "node_modules"), join(folder, "node_modules"));
  return { folder, [Symbol.dispose]: () => rmSync(folder, { recursive: true, force: true }) };
}
