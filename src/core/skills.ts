import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { GatewayError } from "./errors.ts";

/** A folder with a SKILL.md, in the Agent Skills format. */
export type Skill = {
  skillId: string;
  description: string;
  license: string | undefined;
  compatibility: string | undefined;
  metadata: Readonly<Record<string, string>>;
  allowedTools: readonly string[];
  body: string;
  dir: string;
};

export type InvalidSkill = { dir: string; reason: string };

const NAME = /^[a-z0-9]+(-[a-z0-9]+)*$/;
const NAME_LIMIT = 64;
const DESCRIPTION_LIMIT = 1024;
const FILE_LIMIT = 256 * 1024;

/** The skills by id. A folder that is not valid is left out and told of; it never stops the others. */
export const createSkills = () => {
  let skills = new Map<string, Skill>();
  let ids: readonly string[] = [];
  return {
    list: (): readonly Skill[] => [...skills.values()],
    /** In the order of their names; the same list until they are read anew. */
    ids: () => ids,
    find: (skillId: string): Skill | undefined => skills.get(skillId),
    bodies: (skillIds: readonly string[]) =>
      skillIds.flatMap((skillId) => {
        const skill = skills.get(skillId);
        return skill ? [{ skillId, body: skill.body }] : [];
      }),
    /** Reads all folders anew; answers those that were left out. What was read counts from `take` on. */
    async read(dirs: readonly string[]): Promise<{ invalid: InvalidSkill[]; take: () => void }> {
      const { found, invalid } = await readSkills(dirs);
      const take = () => {
        skills = found;
        ids = [...found.keys()].sort();
      };
      return { invalid, take };
    },
  };
};

export type Skills = ReturnType<typeof createSkills>;

/** The ids of those that came, went or are different. */
export const changedSkills = (before: readonly Skill[], after: readonly Skill[]): string[] => {
  const texts = (skills: readonly Skill[]) => new Map(skills.map((skill) => [skill.skillId, JSON.stringify(skill)]));
  const [old, now] = [texts(before), texts(after)];
  return [...new Set([...old.keys(), ...now.keys()])].filter((id) => old.get(id) !== now.get(id));
};

/** Which agents list what: `*` is all. */
export const hasSkill = (agent: { skills: readonly string[] }, skillId: string): boolean =>
  agent.skills.includes("*") || agent.skills.includes(skillId);

/** Refuses a skill that the agent does not have, by its name. */
export const checkSkills = (
  skills: Skills,
  agent: { name: string; skills: readonly string[] },
  skillIds: readonly string[],
): void => {
  for (const skillId of skillIds) {
    if (skills.find(skillId) && hasSkill(agent, skillId)) continue;
    throw new GatewayError("skill-not-found", `The agent ${agent.name} has no skill ${skillId}.`);
  }
};

const readSkills = async (dirs: readonly string[]) => {
  const found = new Map<string, Skill>();
  const invalid: InvalidSkill[] = [];
  for (const dir of dirs) {
    for (const name of await foldersOf(dir, invalid)) {
      const folder = join(dir, name);
      const skill = await readSkill(folder, name);
      if (skill === undefined) continue;
      if (typeof skill === "string") invalid.push({ dir: folder, reason: skill });
      else if (found.has(name)) invalid.push({ dir: folder, reason: `a skill ${name} was read before` });
      else found.set(name, skill);
    }
  }
  return { found, invalid };
};

const foldersOf = async (dir: string, invalid: InvalidSkill[]): Promise<string[]> => {
  try {
    const entries = await readdir(dir, { withFileTypes: true });
    for (const entry of entries) {
      if (entry.isSymbolicLink())
        invalid.push({ dir: join(dir, entry.name), reason: "it is a symbolic link: put the folder here" });
    }
    return entries
      .filter((entry) => entry.isDirectory())
      .map(({ name }) => name)
      .sort();
  } catch (error) {
    invalid.push({ dir, reason: `the folder cannot be read (${(error as NodeJS.ErrnoException).code})` });
    return [];
  }
};

/** The skill, why it is none, or undefined for a folder without a SKILL.md. */
const readSkill = async (dir: string, folder: string): Promise<Skill | string | undefined> => {
  let text: string;
  try {
    text = (await readFile(join(dir, "SKILL.md"), "utf8")).replace(/^\ufeff/, "");
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    return code === "ENOENT" ? undefined : `SKILL.md cannot be read (${code})`;
  }
  if (text.length > FILE_LIMIT) return "SKILL.md is larger than 256 KiB";
  const parts = /^---\r?\n([\s\S]*?)\r?\n---(?:\r?\n|$)([\s\S]*)$/.exec(text);
  if (!parts) return "SKILL.md does not begin with a front matter between two lines of ---";
  const { parse } = await import("yaml");
  let matter: unknown;
  try {
    matter = parse(parts[1] as string, { maxAliasCount: 0 });
  } catch (error) {
    return `the front matter is not YAML: ${(error as Error).message.split("\n")[0]}`;
  }
  return skillOf(dir, folder, matter, (parts[2] as string).trim());
};

const skillOf = (dir: string, folder: string, matter: unknown, body: string): Skill | string => {
  if (typeof matter !== "object" || matter === null || Array.isArray(matter)) return "the front matter is not a map";
  const {
    name,
    description,
    license,
    compatibility,
    metadata = {},
    "allowed-tools": tools,
  } = matter as Record<string, unknown>;
  if (typeof name !== "string" || !NAME.test(name) || name.length > NAME_LIMIT) {
    return "name is not 1 to 64 lower-case letters, digits and single hyphens";
  }
  if (name !== folder) return `name is ${name}, but the folder is ${folder}`;
  if (typeof description !== "string" || description.trim() === "" || description.length > DESCRIPTION_LIMIT) {
    return "description is not a text of 1 to 1024 characters";
  }
  if (typeof metadata !== "object" || metadata === null || Array.isArray(metadata)) return "metadata is not a map";
  return {
    skillId: name,
    description,
    license: typeof license === "string" ? license : undefined,
    compatibility: typeof compatibility === "string" ? compatibility : undefined,
    metadata: Object.fromEntries(Object.entries(metadata).map(([key, value]) => [key, String(value)])),
    allowedTools: typeof tools === "string" ? tools.split(/\s+/).filter(Boolean) : [],
    body,
    dir,
  };
};
