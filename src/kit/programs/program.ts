import { accessSync, constants, statSync } from "node:fs";
import { delimiter, isAbsolute, join, resolve } from "node:path";

/** A program of this machine, as the configuration has it. No shell reads `run`. */
export type Program = { run: readonly string[]; cwd: string; env: Readonly<Record<string, string>> };

/** The variables of the gateway's environment that a program gets: it cannot be without them, and they hold no secret. */
const HANDED_DOWN = ["PATH", "HOME", "LANG", "TMPDIR"];

/** The whole environment of a program. */
export function environmentOf({ env }: Pick<Program, "env">, own: NodeJS.ProcessEnv = process.env) {
  return {
    ...Object.fromEntries(HANDED_DOWN.flatMap((name) => (own[name] === undefined ? [] : [[name, own[name]]]))),
    ...env,
  };
}

export type ProgramFlaw = { at: "run" | "cwd"; message: string };

/** Why a program cannot be started, in the rest of a sentence about the key `at`; undefined where nothing speaks against it. */
export function programFlaw(program: Program): ProgramFlaw | undefined {
  const { run, cwd } = program;
  const [name = ""] = run;
  if (!isFolder(cwd)) return { at: "cwd", message: `is not a folder: ${cwd}` };
  const { PATH = "" }: Record<string, string | undefined> = environmentOf(program);
  const places = name.includes("/")
    ? [isAbsolute(name) ? name : resolve(cwd, name)]
    : PATH.split(delimiter).map((folder) => join(resolve(cwd, folder), name));
  if (places.some(isProgram)) return undefined;
  const found = places.find(isFile);
  if (found !== undefined) return { at: "run", message: `names a file that is not executable: ${found}` };
  const where = name.includes("/") ? places[0] : `in no folder of PATH`;
  return { at: "run", message: `names a program that does not exist: ${name} (${where})` };
}

function isFolder(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isDirectory() === true;
}

function isFile(path: string): boolean {
  try {
    return statSync(path, { throwIfNoEntry: false })?.isFile() === true;
  } catch {
    return false;
  }
}

function isProgram(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return isFile(path);
  } catch {
    return false;
  }
}
