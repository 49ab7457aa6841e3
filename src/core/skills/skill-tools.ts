import { constants } from "node:fs";
import { open, readdir, realpath, stat } from "node:fs/promises";
import { isAbsolute, join, relative, resolve, sep } from "node:path";
import type { Agent } from "#core/agents/agents.ts";
import { type Tool, ToolError } from "#tools/tool.ts";
import { hasSkill, type Skill, type Skills, skillsOf } from "./skills.ts";

/**
 * The tools by which a model loads the skills of its agent, and reads the files in their folders. The operator put them there:
 * they are instructions.
 */
export function skillTools(skills: Skills, agent: Agent): readonly Tool[] {
  if (!skills.list().some(({ skillId }) => hasSkill(agent, skillId))) return [];
  const find = (args: unknown): Skill => {
    const skillId = textOf(args, "skill_id");
    const skill = hasSkill(agent, skillId) ? skills.find(skillId) : undefined;
    if (!skill) {
      const all = skillsOf(skills, agent).join(", ");
      throw new ToolError(`There is no skill ${JSON.stringify(skillId)}. There are: ${all}.`);
    }
    return skill;
  };
  return [
    {
      name: "load_skill",
      description: "Gives the instructions of a skill, and names the files that belong to it.",
      isOutside: false,
      parameters: parametersOf({ skill_id: "The skill, by its name." }),
      async call(args) {
        const skill = find(args);
        const files = await listSkillFiles(skill.dir);
        const named = files.length === 0 ? "" : `\n\nFiles, for read_skill_file:\n${files.join("\n")}`;
        return `${skill.body}${named}`;
      },
    },
    {
      name: "read_skill_file",
      description: "Reads a file of a skill, by its path in the skill's folder.",
      isOutside: false,
      parameters: parametersOf({ skill_id: "The skill, by its name.", path: "The file, as references/terms.md." }),
      call: async (args) => await readSkillFile(find(args).dir, textOf(args, "path")),
    },
  ];
}

function parametersOf(words: Record<string, string>): Tool["parameters"] {
  return {
    type: "object",
    additionalProperties: false,
    required: Object.keys(words),
    properties: Object.fromEntries(
      Object.entries(words).map(([name, description]) => [name, { type: "string", description }]),
    ),
  };
}

function textOf(args: unknown, name: string): string {
  const value = (args as Record<string, unknown> | null | undefined)?.[name];
  if (typeof value !== "string") throw new ToolError(`${name} has to be a text.`);
  return value;
}

const FILE_LIMIT = 256 * 1024;
const FILES_LISTED = 200;
/** A pipe would keep who opens it waiting. */
const READ = constants.O_RDONLY | constants.O_NONBLOCK;
const DEPTH = 4;

/** The files of a skill's folder except its SKILL.md, by their paths in it. Links are ignored. */
async function listSkillFiles(dir: string): Promise<string[]> {
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
}

/**
 * A text file of a skill. Neither `..` nor a link leads out of the folder: the file that was opened is looked at, not the path that was
 * asked for.
 */
async function readSkillFile(dir: string, path: string): Promise<string> {
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
    if (!opened.isFile()) throw new ToolError(`${path} is not a file.`);
    if (opened.size > FILE_LIMIT) throw new ToolError(`${path} is larger than 256 KiB.`);
    const bytes = await file.readFile();
    const text = bytes.toString("utf8");
    if (text.includes("\0") || text.includes("\ufffd")) throw new ToolError(`${path} is not text.`);
    return text;
  } finally {
    await file.close();
  }
}

function isBelow(dir: string, path: string): boolean {
  const way = relative(dir, path);
  return way !== "" && way !== ".." && !way.startsWith(`..${sep}`) && !isAbsolute(way);
}
