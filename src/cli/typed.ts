import { existsSync } from "node:fs";
import { basename, delimiter, dirname, isAbsolute, join, relative, sep } from "node:path";

type Run = {
  /** The file that Node runs, as `process.argv[1]` names it. */
  file: string;
  cwd: string;
  env: Readonly<Record<string, string | undefined>>;
  exists?: (file: string) => boolean;
};

/** The command with which the user can run this program: its name if it is installed, `npx` in a clone or a project, otherwise `node`. */
export function programOf({ file, cwd, env, exists = existsSync }: Run): string {
  const folders = file.split(/[\\/]/);
  if (NAME.test(basename(file))) return folders.includes(".bin") ? `npx ${PROGRAM}` : PROGRAM;
  // Node was given the file itself: by `npm start`, by a person, by a unit, or by the entry point of an image.
  const home = dirname(dirname(file));
  const installedIn = folders.indexOf("node_modules");
  const project = installedIn < 0 ? home : folders.slice(0, installedIn).join(sep);
  const isProject = installedIn >= 0 || exists(join(home, "package-lock.json"));
  if (isProject && isWithin(cwd, project)) return `npx ${PROGRAM}`;
  const path = (env.PATH ?? "").split(delimiter).filter((folder) => folder !== "" && basename(folder) !== ".bin");
  if (path.some((folder) => exists(join(folder, PROGRAM)))) return PROGRAM;
  const shown = /^[\w./\\:@+-]+$/.test(file) ? file : `'${file.replaceAll("'", "'\\''")}'`;
  return `node ${shown}`;
}

const PROGRAM = "agent-gateway";
const NAME = /^agent-gateway(?:\.\w+)?$/;

function isWithin(folder: string, parent: string): boolean {
  const way = relative(parent, folder);
  return !way.startsWith("..") && !isAbsolute(way);
}

let program: string | undefined;

/** Replaces the commands in a hint by those that the user can type: `npx agent-gateway doctor` for `agent-gateway doctor`. */
export function asTyped(hint: string): string {
  program ??= programOf({ file: process.argv[1] ?? PROGRAM, cwd: process.cwd(), env: process.env });
  return hint.replace(/(?<!npx |[\w./-])agent-gateway(?= )/g, program.replaceAll("$", "$$$$"));
}
