import { constants } from "node:fs";
import { lstat, open, readdir, realpath, stat } from "node:fs/promises";
import { isAbsolute, join, relative, resolve, sep } from "node:path";

const FILE_LIMIT = 256 * 1024;
const FILES_LISTED = 200;
/** Without O_NONBLOCK, opening a pipe would block. */
const READ = constants.O_RDONLY | constants.O_NONBLOCK;
const DEPTH = 4;

/** The files of a skill's folder by their paths in it, at most 200, in the order of their names. Links are ignored. */
export async function listSkillFiles(dir: string): Promise<string[]> {
  const found: string[] = [];
  const visit = async (folder: string, depth: number): Promise<void> => {
    const entries = await readdir(join(dir, folder), { withFileTypes: true }).catch(() => []);
    for (const entry of entries.sort((a, b) => (a.name < b.name ? -1 : 1))) {
      if (found.length >= FILES_LISTED) return;
      const path = folder === "" ? entry.name : `${folder}/${entry.name}`;
      if (entry.isDirectory() && depth < DEPTH) await visit(path, depth + 1);
      if (entry.isFile()) found.push(path);
    }
  };
  await visit("", 1);
  return found;
}

/** The size of a listed file, and the time of its last change in milliseconds. Undefined if it cannot be read, or is too large. */
export async function sizeOfSkillFile(dir: string, path: string) {
  const found = await lstat(join(dir, path)).catch(() => undefined);
  return found?.isFile() && found.size <= FILE_LIMIT ? { path, size: found.size, modified: found.mtimeMs } : undefined;
}

/**
 * A file of a skill, or a sentence why it is not read. Neither `..` nor a link leads out of the folder: the opened file is checked, not the requested
 * path.
 */
export async function readSkillFile(dir: string, path: string): Promise<{ bytes: Buffer } | { fault: string }> {
  const wanted = resolve(dir, path);
  const outside = { fault: `${path} is not in the skill's folder.` };
  if (path.includes("\0") || !isBelow(dir, wanted)) return outside;
  const missing = { fault: `The skill has no file ${path}.` };
  const file = await open(wanted, READ).catch(() => undefined);
  if (!file) return missing;
  try {
    const [real, root] = await Promise.all([realpath(wanted), realpath(dir)]).catch(() => [undefined, undefined]);
    if (real === undefined || root === undefined) return missing;
    if (!isBelow(root, real)) return outside;
    const [opened, there] = await Promise.all([file.stat(), stat(real)]);
    if (opened.ino !== there.ino || opened.dev !== there.dev) return missing;
    if (!opened.isFile()) return { fault: `${path} is not a file.` };
    if (opened.size > FILE_LIMIT) return { fault: `${path} is larger than 256 KiB.` };
    return { bytes: await file.readFile() };
  } finally {
    await file.close();
  }
}

function isBelow(dir: string, path: string): boolean {
  const way = relative(dir, path);
  return way !== "" && way !== ".." && !way.startsWith(`..${sep}`) && !isAbsolute(way);
}
