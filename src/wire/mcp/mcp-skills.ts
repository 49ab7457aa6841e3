import type { McpServer } from "@modelcontextprotocol/server";
import { type Skill, type SkillSource, SkillsExtension, skillEntry } from "@modelcontextprotocol/server/ext/skills";
import type { McpSkill, McpSkills, RestCaller } from "#core/mcp-tools.ts";

type Known = { state: string; skill: Skill | undefined };

/** The skills extension: the files of the skills that a caller may trigger. A skill whose files do not follow its rules is left out. */
export function createMcpSkills({ list }: McpSkills) {
  const known = new Map<string, Known>();

  /** The entry of a skill, read again if a file has changed. */
  const entryOf = async (skill: McpSkill): Promise<Skill | undefined> => {
    const files = await skill.files();
    const state = JSON.stringify(files);
    const before = known.get(skill.id);
    if (before?.state === state) return before.skill;
    const contents = await Promise.all(files.map(async ({ path }) => [path, await skill.read(path)] as const));
    const read = Object.fromEntries(contents.filter((one): one is [string, Uint8Array] => one[1] !== undefined));
    const entry = await skillEntry(skill.id, read).catch(() => undefined);
    known.set(skill.id, { state, skill: entry });
    return entry;
  };

  const sourceFor = (caller: RestCaller): SkillSource => {
    const find = (uri: string) => list(caller).find(({ id }) => uri.startsWith(rootOf(id)));
    return {
      async list() {
        const entries = await Promise.all(list(caller).map(entryOf));
        return { skills: entries.filter((entry) => entry !== undefined) };
      },
      async get(uri) {
        const skill = find(uri);
        return skill && uri === `${rootOf(skill.id)}SKILL.md` ? await entryOf(skill) : undefined;
      },
      async read(uri) {
        const skill = find(uri);
        const bytes = skill && (await skill.read(decodeURIComponent(uri.slice(rootOf(skill.id).length))));
        return bytes && { bytes };
      },
    };
  };

  return {
    /** Serves the skills of a caller, if it has any. */
    attach(mcp: McpServer, caller: RestCaller): void {
      if (list(caller).length > 0) new SkillsExtension({ source: sourceFor(caller) }).attach(mcp);
    },
  };
}

function rootOf(id: string): string {
  return `skill://${encodeURIComponent(id)}/`;
}
