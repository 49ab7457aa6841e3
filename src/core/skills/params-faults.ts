import { readSkills } from "./read-skills.ts";

/** The faults of params for a skill in these folders, with their places. None if the skill is not there, is not valid or takes any params. */
export async function paramsFaults(dirs: readonly string[], skillId: string, params: object) {
  const { found } = await readSkills(dirs);
  const faults = found.get(skillId)?.params?.check(params) ?? [];
  return faults.map(({ pointer, message }) => ({ path: pointer.split("/").slice(1).map(stepOf), message }));
}

function stepOf(step: string): string | number {
  return /^\d+$/.test(step) ? Number(step) : step.replaceAll("~1", "/").replaceAll("~0", "~");
}
