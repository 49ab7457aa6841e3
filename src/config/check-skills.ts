import { readdir } from "node:fs/promises";
import { meantOrListed } from "./check.ts";
import type { CheckedConfig } from "./conform.ts";
import { besideFile, unreadable } from "./files.ts";
import type { Findings, Path } from "./problems.ts";

/** The folders of skills must be readable, and agents should name skills that are in them. */
export async function checkSkills(
  { skills, agents }: CheckedConfig,
  file: string | null,
  { refuse, warn }: Findings,
): Promise<void> {
  let isUnread = false;
  const namesIn = async (dir: (typeof skills.dirs)[number], index: number): Promise<string[]> => {
    const { path, optional } = skillDirOf(dir);
    const at: Path = ["skills", "dirs", index, ...(typeof dir === "string" ? [] : ["path"])];
    try {
      const entries = await readdir(besideFile(file, path), { withFileTypes: true });
      return entries.filter((entry) => entry.isDirectory()).map(({ name }) => name);
    } catch (error) {
      const isAbsent = (error as NodeJS.ErrnoException).code === "ENOENT";
      if (isAbsent && optional) return [];
      const form = isAbsent ? ` If it may be absent, write \`{ path: ${JSON.stringify(path)}, optional: true }\`.` : "";
      refuse(at, `names the folder ${unreadable(path, error)}${form}`);
      isUnread = true;
      return [];
    }
  };
  const names = (await Promise.all(skills.dirs.map(namesIn))).flat();
  if (isUnread) return;
  for (const [agent, { skills: wanted }] of Object.entries(agents)) {
    for (const [index, skill] of wanted.entries()) {
      if (skill === "*" || names.includes(skill)) continue;
      const hint = names.length === 0 ? "there is none yet." : meantOrListed(names, skill);
      warn(["agents", agent, "skills", index], `names a skill that no folder of \`skills.dirs\` has; ${hint}`);
    }
  }
}

/** A folder of skills, which may be written as its path alone. */
export const skillDirOf = (dir: CheckedConfig["skills"]["dirs"][number]): { path: string; optional: boolean } =>
  typeof dir === "string" ? { path: dir, optional: false } : { path: dir.path, optional: dir.optional === true };
