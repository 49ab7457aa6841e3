import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll } from "vitest";

/** A folder of skills, by folder name with the text of SKILL.md. Deleted after the file's tests. */
export function skillsFolder(skills: Record<string, string>): string {
  const folder = mkdtempSync(join(tmpdir(), "gateway-skills-"));
  for (const [name, text] of Object.entries(skills)) {
    mkdirSync(join(folder, name), { recursive: true });
    writeFileSync(join(folder, name, "SKILL.md"), text);
  }
  afterAll(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

/** A SKILL.md with these lines after its description. */
export function skillText(name: string, description: string, ...lines: string[]): string {
  return ["---", `name: ${name}`, `description: ${description}`, ...lines, "---", `How to ${name}.`, ""].join("\n");
}

/** The skill of the contract's examples. */
export const SUMMARISE = {
  "summarise-thread": skillText(
    "summarise-thread",
    "Summarises a long conversation. Use it when someone asks what happened so far.",
  ),
};
