import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createSkills } from "#core/skills/skills.ts";

/** A folder of skill folders, by name; deleted when the test ends. */
export async function makeDir(files: Record<string, string | Buffer | undefined>) {
  const dir = await mkdtemp(join(tmpdir(), "skills-"));
  for (const [name, text] of Object.entries(files)) {
    await mkdir(join(dir, name), { recursive: true });
    if (text !== undefined) await writeFile(join(dir, name, "SKILL.md"), text);
  }
  return { dir, [Symbol.asyncDispose]: () => rm(dir, { recursive: true }) };
}

export function skill(name: string, more = "", body = "Do it well.") {
  return `---\nname: ${name}\ndescription: Does ${name}.\n${more}---\n${body}\n`;
}

export async function load(...dirs: string[]) {
  const skills = createSkills();
  const { invalid, take } = await skills.read(dirs);
  take();
  return { skills, invalid, ids: skills.list().map(({ skillId }) => skillId) };
}
