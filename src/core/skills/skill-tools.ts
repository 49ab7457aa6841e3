import type { Agent } from "#core/agents/agents.ts";
import { type Tool, ToolError } from "#tools/tool.ts";
import { listSkillFiles, readSkillFile } from "./skill-files.ts";
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
        const files = (await listSkillFiles(skill.dir)).filter((path) => path !== "SKILL.md");
        const named = files.length === 0 ? "" : `\n\nFiles, for read_skill_file:\n${files.join("\n")}`;
        return `${skill.body}${named}`;
      },
    },
    {
      name: "read_skill_file",
      description: "Reads a file of a skill, by its path in the skill's folder.",
      isOutside: false,
      parameters: parametersOf({ skill_id: "The skill, by its name.", path: "The file, as references/terms.md." }),
      async call(args) {
        const { dir } = find(args);
        const path = textOf(args, "path");
        const read = await readSkillFile(dir, path);
        if ("fault" in read) throw new ToolError(read.fault);
        const text = read.bytes.toString("utf8");
        if (text.includes("\0") || text.includes("\ufffd")) throw new ToolError(`${path} is not text.`);
        return text;
      },
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
