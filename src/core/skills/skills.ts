import { basename, dirname } from "node:path";
import { GatewayError } from "#kit/errors.ts";
import { foremost, quoted, suggest } from "#kit/fault-words.ts";
import { type InvalidSkill, readSkills, type Skill } from "./read-skills.ts";

export type { InvalidSkill, Skill };

/** The skills by id. An invalid folder is omitted and reported; it never affects the others. */
export function createSkills() {
  let skills = new Map<string, Skill>();
  let ids: readonly string[] = [];
  let leftOut: readonly LeftOutFolder[] = [];
  let changed = (): void => {};
  return {
    list: (): readonly Skill[] => [...skills.values()],
    /** In the order of their names; the same list until the next read. */
    ids: () => ids,
    find: (skillId: string): Skill | undefined => skills.get(skillId),
    /** Throws `skill-not-found`, with the fault of a folder of this name. */
    get(skillId: string): Skill {
      const skill = skills.get(skillId);
      if (skill) return skill;
      const fault = leftOut.find(({ folder }) => folder === skillId);
      const detail = fault
        ? `The skill ${quoted(skillId)} is not valid: ${fault.reason}.`
        : `There is no skill ${quoted(skillId)}.${suggest(skillId, ids)}`;
      throw new GatewayError("skill-not-found", detail);
    },
    /** Sets the function that is called after other skills have taken effect. */
    onChange: (listener: () => void): void => {
      changed = listener;
    },
    /** The folders that were left out when the skills were read last. */
    leftOut: () => leftOut,
    bodies: (skillIds: readonly string[]) =>
      skillIds.flatMap((skillId) => {
        const skill = skills.get(skillId);
        return skill ? [{ skillId, body: skill.body }] : [];
      }),
    /**
     * Reads all folders again; returns the omitted folders. The result takes effect with `take`, which returns true if the skills are different. If a
     * folder cannot be read, the previous skills remain.
     */
    async read(dirs: readonly string[]): Promise<{ invalid: InvalidSkill[]; take: () => boolean }> {
      const { found, invalid, isWhole } = await readSkills(dirs);
      const take = () => {
        leftOut = invalid.map((one) => leftOutFolderOf(one, dirs));
        if (!isWhole && skills.size > 0) return false;
        const isDifferent = changedSkills([...skills.values()], [...found.values()]).length > 0;
        skills = found;
        ids = [...found.keys()].sort();
        if (isDifferent) changed();
        return isDifferent;
      };
      return { invalid, take };
    },
  };
}

/** A folder that holds no valid skill, without the way to it on this machine. `path` begins with the folder of `skills.dirs` that it is in. */
type LeftOutFolder = { folder: string; path: string; reason: string };

function leftOutFolderOf({ dir, reason }: InvalidSkill, dirs: readonly string[]): LeftOutFolder {
  const folder = basename(dir);
  return { folder, path: dirs.includes(dir) ? folder : `${basename(dirname(dir))}/${folder}`, reason };
}

export type Skills = ReturnType<typeof createSkills>;

/** The ids of added, removed and changed skills. */
export function changedSkills(before: readonly Skill[], after: readonly Skill[]): string[] {
  const texts = (skills: readonly Skill[]) => new Map(skills.map((skill) => [skill.skillId, JSON.stringify(skill)]));
  const [old, now] = [texts(before), texts(after)];
  return [...new Set([...old.keys(), ...now.keys()])].filter((id) => old.get(id) !== now.get(id));
}

/** Which agents list what: `*` is all. */
export function hasSkill(agent: { skills: readonly string[] }, skillId: string): boolean {
  return agent.skills.includes("*") || agent.skills.includes(skillId);
}

export function skillsOf(skills: Skills, agent: { skills: readonly string[] }): string[] {
  return skills.ids().filter((id) => hasSkill(agent, id));
}

/** Refuses a skill that the agent does not have, by its name, and names those that it has. */
export function checkSkills(
  skills: Skills,
  agent: { name: string; skills: readonly string[] },
  skillIds: readonly string[],
): void {
  for (const skillId of skillIds) {
    if (skills.find(skillId) && hasSkill(agent, skillId)) continue;
    const its = skillsOf(skills, agent);
    const meant = its.length === 0 ? " It has no skills." : suggest(skillId, its);
    throw new GatewayError("skill-not-found", `The agent ${agent.name} has no skill ${quoted(skillId)}.${meant}`);
  }
}

/** The message of a turn that triggers a skill. */
export function triggerText(skillId: string, params: Readonly<Record<string, unknown>>): string {
  return `/${skillId} ${JSON.stringify(params)}`;
}

/** Refuses params that do not fit the skill's `params.schema.json`, where it has one. */
export function checkParams({ params }: Skill, given: unknown): void {
  const faults = params?.check(given) ?? [];
  const first = foremost(faults);
  if (!first) return;
  const errors = faults.map(({ pointer, message }) => ({ pointer: `/params${pointer}`, message }));
  const name = `params${first.pointer.replaceAll("/", ".")}`;
  throw new GatewayError("invalid-request", `${name} ${first.message}.`, { errors });
}
