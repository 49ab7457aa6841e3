import { readdir } from "node:fs/promises";
import { dirname, resolve } from "node:path";
import { type Findings, meantOrListed } from "./check.ts";
import type { CheckedConfig } from "./conform.ts";
import type { Fault, Path } from "./problems.ts";
import { unreadable } from "./read.ts";

/** That the folders of skills can be read, and that agents name skills which are in them. Paths begin at the file's folder. */
export async function checkSkills({ skills, agents }: CheckedConfig, file: string | null): Promise<Findings> {
  const faults: Fault[] = [];
  const from = file === null ? "." : dirname(file);
  const look = async (dir: (typeof skills.dirs)[number], index: number): Promise<string[]> => {
    const { path, optional } = skillDirOf(dir);
    const at: Path = ["skills", "dirs", index, ...(typeof dir === "string" ? [] : ["path"])];
    try {
      const entries = await readdir(resolve(from, path), { withFileTypes: true });
      return entries.filter((entry) => entry.isDirectory()).map(({ name }) => name);
    } catch (error) {
      const isAbsent = (error as NodeJS.ErrnoException).code === "ENOENT";
      if (isAbsent && optional) return [];
      const form = isAbsent ? ` If it may be absent, write \`{ path: ${JSON.stringify(path)}, optional: true }\`.` : "";
      const message = `names the folder ${unreadable(path, error)}${form}`;
      faults.push({ path: at, on: "value", message });
      return [];
    }
  };
  const names = (await Promise.all(skills.dirs.map(look))).flat();
  const warnings = Object.entries(agents).flatMap(([agent, { skills: wanted }]) =>
    wanted.flatMap((skill, index): Fault[] => {
      if (skill === "*" || names.includes(skill)) return [];
      const hint = names.length === 0 ? "there is none yet." : meantOrListed(names, skill);
      const message = `names a skill that no folder of \`skills.dirs\` has; ${hint}`;
      return [{ path: ["agents", agent, "skills", index], on: "value", message }];
    }),
  );
  return { faults, warnings: faults.length === 0 ? warnings : [] };
}

/** A folder of skills, which may be written as its path alone. */
export const skillDirOf = (dir: CheckedConfig["skills"]["dirs"][number]): { path: string; optional: boolean } =>
  typeof dir === "string" ? { path: dir, optional: false } : { path: dir.path, optional: dir.optional === true };
