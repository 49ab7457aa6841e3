import { constants } from "node:fs";
import { open, readdir, realpath, stat } from "node:fs/promises";
import { isAbsolute, join, relative, resolve, sep } from "node:path";
import { ToolError } from "#tools/tool.ts";

const FILE_LIMIT = 256 * 1024;
const FILES_LISTED = 200;
/** A pipe would keep who opens it waiting. */
const READ = constants.O_RDONLY | constants.O_NONBLOCK;
const DEPTH = 4;

/** The files of a skill's folder beside its SKILL.md, by their paths in it. Links are passed over. */
export const listSkillFiles = async (dir: string): Promise<string[]> => {
  const found: string[] = [];
  const visit = async (folder: string, depth: number): Promise<void> => {
    const entries = await readdir(join(dir, folder), { withFileTypes: true }).catch(() => []);
    for (const entry of entries.sort((a, b) => (a.name < b.name ? -1 : 1))) {
      if (found.length >= FILES_LISTED) return;
      const path = folder === "" ? entry.name : `${folder}/${entry.name}`;
      if (entry.isDirectory() && depth < DEPTH) await visit(path, depth + 1);
      if (entry.isFile() && path !== "SKILL.md") found.push(path);
    }
  };
  await visit("", 1);
  return found;
};

/**
 * The text of a file, where that is no link and no pipe: what is opened is looked at, whatever stood there a moment before. Undefined where
 * there is none; a fault is the rest of a sentence about the file.
 */
export const readPlainFile = async (path: string, most: number): Promise<string | { fault: string } | undefined> => {
  try {
    await using file = await open(path, READ | constants.O_NOFOLLOW);
    const stats = await file.stat();
    // A folder says by itself that it cannot be read.
    if (!stats.isFile() && !stats.isDirectory()) return { fault: "cannot be read (it is no file)" };
    if (stats.size > most) return { fault: `is larger than ${most / 1024} KiB` };
    return await file.readFile("utf8");
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    return code === "ENOENT" ? undefined : { fault: `cannot be read (${code})` };
  }
};

/**
 * A text file of a skill. Neither `..` nor a link leads out of the folder: the file that was opened is looked at, not the path that was
 * asked for.
 */
export const readSkillFile = async (dir: string, path: string): Promise<string> => {
  const wanted = resolve(dir, path);
  if (path.includes("\0") || !isBelow(dir, wanted)) throw new ToolError(`${path} is not in the skill's folder.`);
  const missing = new ToolError(`The skill has no file ${path}.`);
  const file = await open(wanted, READ).catch(() => undefined);
  if (!file) throw missing;
  try {
    const [real, root] = await Promise.all([realpath(wanted), realpath(dir)]).catch(() => [undefined, undefined]);
    if (real === undefined || root === undefined) throw missing;
    if (!isBelow(root, real)) throw new ToolError(`${path} is not in the skill's folder.`);
    const [opened, there] = await Promise.all([file.stat(), stat(real)]);
    if (opened.ino !== there.ino || opened.dev !== there.dev) throw missing;
    if (!opened.isFile()) throw new ToolError(`${path} is no file.`);
    if (opened.size > FILE_LIMIT) throw new ToolError(`${path} is larger than 256 KiB.`);
    const bytes = await file.readFile();
    const text = bytes.toString("utf8");
    if (text.includes("\0") || text.includes("\ufffd")) throw new ToolError(`${path} is no text.`);
    return text;
  } finally {
    await file.close();
  }
};

const isBelow = (dir: string, path: string): boolean => {
  const way = relative(dir, path);
  return way !== "" && way !== ".." && !way.startsWith(`..${sep}`) && !isAbsolute(way);
};
