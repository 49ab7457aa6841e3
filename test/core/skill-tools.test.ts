import { execFileSync } from "node:child_process";
import { mkdir, mkdtemp, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import type { Agent } from "#core/agents/agents.ts";
import { skillTools } from "#core/skills/skill-tools.ts";
import { createSkills } from "#core/skills/skills.ts";

const signal = new AbortController().signal;

/** Two skills: `invoice`, with files, and `secret`, which the agent does not have. */
async function makeSkills() {
  const dir = await mkdtemp(join(tmpdir(), "skill-tools-"));
  const write = async (path: string, text: string | Buffer) => {
    await mkdir(join(dir, path, ".."), { recursive: true });
    await writeFile(join(dir, path), text);
  };
  await write("skills/invoice/SKILL.md", "---\nname: invoice\ndescription: Reads invoices.\n---\nLook at the terms.");
  await write("skills/invoice/references/terms.md", "Net 30.");
  await write("skills/invoice/assets/logo.png", Buffer.from([0x89, 0, 1, 2, 0xff]));
  await write("skills/invoice/huge.txt", "x".repeat(256 * 1024 + 1));
  await write("skills/secret/SKILL.md", "---\nname: secret\ndescription: Hidden.\n---\nHidden.");
  await write("outside.txt", "outside");
  const invoice = join(dir, "skills/invoice");
  await symlink(join(dir, "outside.txt"), join(invoice, "link.txt"));
  await symlink(join(dir, "skills"), join(invoice, "up"));
  execFileSync("mkfifo", [join(invoice, "pipe")]);
  const skills = createSkills();
  (await skills.read([join(dir, "skills")])).take();
  const agent = { name: "main", skills: ["invoice"] } as unknown as Agent;
  const tools = skillTools(skills, agent);
  const call = (name: string, args: unknown) => tools.find((tool) => tool.name === name)?.call(args, signal);
  const read = (path: string) => call("read_skill_file", { skill_id: "invoice", path });
  return { dir, skills, agent, tools, call, read, [Symbol.asyncDispose]: () => rm(dir, { recursive: true }) };
}

describe("the tools of skills", () => {
  it("return a skill's text and the names of its files, without links and pipes", async () => {
    await using made = await makeSkills();
    expect(await made.call("load_skill", { skill_id: "invoice" })).toBe(
      "Look at the terms.\n\nFiles, for read_skill_file:\nassets/logo.png\nhuge.txt\nreferences/terms.md",
    );
  });

  it("read a file of the skill", async () => {
    await using made = await makeSkills();
    expect(await made.read("references/terms.md")).toBe("Net 30.");
    expect(await made.read("./references/../references/terms.md")).toBe("Net 30.");
  });

  it.each([
    "../../outside.txt",
    "../secret/SKILL.md",
    "/etc/passwd",
    "link.txt",
    "up/secret/SKILL.md",
    "up/invoice/../../../outside.txt",
    "references/terms.md\0.txt",
    "",
    ".",
    "..",
  ])("do not read %j, which is not in the skill's folder", async (path) => {
    await using made = await makeSkills();
    await expect(made.read(path)).rejects.toThrow(/is not in the skill's folder|has no file/);
  });

  it.each([
    ["references", "is not a file"],
    ["pipe", "is not a file"],
    ["nothing.md", "has no file nothing.md"],
    ["huge.txt", "is larger than 256 KiB"],
    ["assets/logo.png", "is not text"],
  ])("report for %s why it cannot be read", async (path, reason) => {
    await using made = await makeSkills();
    await expect(made.read(path)).rejects.toThrow(reason);
  });

  it("find no skill that the agent does not have", async () => {
    await using made = await makeSkills();
    for (const skill_id of ["secret", "nothing", "__proto__"]) {
      await expect(made.call("load_skill", { skill_id })).rejects.toThrow(/^There is no skill .*\. There are: /);
      await expect(made.call("read_skill_file", { skill_id, path: "SKILL.md" })).rejects.toThrow("There is no skill");
    }
    await expect(made.call("load_skill", null)).rejects.toThrow("skill_id has to be a text.");
  });

  it("do not exist for an agent without skills", async () => {
    await using made = await makeSkills();
    expect(made.tools.map(({ name }) => name)).toEqual(["load_skill", "read_skill_file"]);
    expect(skillTools(made.skills, { ...made.agent, skills: [] })).toEqual([]);
  });
});
