import { mkdir, rm, writeFile } from "node:fs/promises";
import { basename, join } from "node:path";
import { describe, expect, it } from "vitest";
import { checkSkills, hasSkill } from "#core/skills/skills.ts";
import { load, makeDir, skill } from "./skill-dirs.ts";
import { startCore } from "./start-core.ts";

describe("reading skills", () => {
  it("reads every field of a SKILL.md, and its text without the front matter", async () => {
    const more = `license: MIT
compatibility: needs git
metadata: { author: ada, version: 1.5, draft: false }
allowed-tools: Bash(git:*)   Read
unknown: ignored
`;
    await using made = await makeDir({
      summarise: skill("summarise", more, "\n# How\n\nShortly.\n---\nStill text.\n\n"),
    });
    const { skills, invalid } = await load(made.dir);
    expect(invalid).toEqual([]);
    expect(skills.find("summarise")).toEqual({
      skillId: "summarise",
      description: "Does summarise.",
      license: "MIT",
      compatibility: "needs git",
      metadata: { author: "ada", version: "1.5", draft: "false" },
      allowedTools: ["Bash(git:*)", "Read"],
      body: "# How\n\nShortly.\n---\nStill text.",
      dir: join(made.dir, "summarise"),
      params: undefined,
    });
  });

  it("needs only a name and a description", async () => {
    await using made = await makeDir({ a: "---\nname: a\ndescription: A.\n---" });
    const { skills } = await load(made.dir);
    expect(skills.find("a")).toEqual({
      skillId: "a",
      description: "A.",
      license: undefined,
      compatibility: undefined,
      metadata: {},
      allowedTools: [],
      body: "",
      dir: join(made.dir, "a"),
      params: undefined,
    });
  });

  it("returns metadata as they are written, whatever their YAML type", async () => {
    const more = `metadata:
  version: 1.0
  since: 2024-01-02
  build: 0x10
  size: 1e3
  draft: yes
  ready: True
  owner: null
  next: ~
  empty:
  quoted: "1.0"
  text: |
    two
    lines
  tool: { "bins": ["git"], always: true }
  2.0: a key
`;
    await using made = await makeDir({ a: skill("a", more) });
    expect((await load(made.dir)).skills.find("a")?.metadata).toEqual({
      version: "1.0",
      since: "2024-01-02",
      build: "0x10",
      size: "1e3",
      draft: "yes",
      ready: "True",
      owner: "null",
      next: "~",
      empty: "",
      quoted: "1.0",
      text: "two\nlines\n",
      tool: '{"bins":["git"],"always":true}',
      "2.0": "a key",
    });
  });

  it("reads files with the line ends of Windows", async () => {
    await using made = await makeDir({ a: skill("a").replaceAll("\n", "\r\n") });
    expect((await load(made.dir)).skills.find("a")).toMatchObject({ description: "Does a.", body: "Do it well." });
  });

  it("lists skills by name, those of the first folder first", async () => {
    await using first = await makeDir({ zebra: skill("zebra"), ant: skill("ant") });
    await using second = await makeDir({ bee: skill("bee") });
    expect((await load(first.dir, second.dir)).ids).toEqual(["ant", "zebra", "bee"]);
  });

  it("ignores files and folders without a SKILL.md", async () => {
    await using made = await makeDir({ a: skill("a"), empty: undefined });
    await writeFile(join(made.dir, "README.md"), "not a skill");
    expect(await load(made.dir)).toMatchObject({ ids: ["a"], invalid: [] });
  });

  it("drops deleted skills and finds new ones when it reads again", async () => {
    await using made = await makeDir({ old: skill("old"), kept: skill("kept") });
    const { skills } = await load(made.dir);
    await rm(join(made.dir, "old"), { recursive: true });
    await mkdir(join(made.dir, "new"));
    await writeFile(join(made.dir, "new", "SKILL.md"), skill("new"));
    const { take } = await skills.read([made.dir]);
    expect(skills.list().map(({ skillId }) => skillId)).toEqual(["kept", "old"]);
    take();
    expect(skills.list().map(({ skillId }) => skillId)).toEqual(["kept", "new"]);
  });

  it("remembers the skipped folders until it reads again", async () => {
    await using made = await makeDir({ a: "no skill", b: skill("b") });
    const { skills } = await load(made.dir);
    const [left] = skills.leftOut();
    expect(left).toMatchObject({ folder: "a", path: `${basename(made.dir)}/a` });
    await writeFile(join(made.dir, "a", "SKILL.md"), skill("a"));
    const { take } = await skills.read([made.dir]);
    expect(skills.leftOut()).toEqual([left]);
    take();
    expect(skills.leftOut()).toEqual([]);
  });

  it("lists a folder of skills that cannot be read under its own name", async () => {
    const { skills } = await load();
    const made = await makeDir({ b: skill("b") });
    await made[Symbol.asyncDispose]();
    (await skills.read([made.dir])).take();
    expect(skills.leftOut()).toEqual([
      { folder: basename(made.dir), path: basename(made.dir), reason: expect.stringContaining("ENOENT") },
    ]);
  });

  it("returns the bodies of the existing skills", async () => {
    await using made = await makeDir({ a: skill("a", "", "Be a."), b: skill("b", "", "Be b.") });
    const { skills } = await load(made.dir);
    expect(skills.bodies(["b", "missing", "a"])).toEqual([
      { skillId: "b", body: "Be b." },
      { skillId: "a", body: "Be a." },
    ]);
  });
});

describe("the skills of an agent", () => {
  it("are those that it lists, or all", () => {
    expect(hasSkill({ skills: ["a", "b"] }, "b")).toBe(true);
    expect(hasSkill({ skills: ["a", "b"] }, "c")).toBe(false);
    expect(hasSkill({ skills: ["*"] }, "c")).toBe(true);
    expect(hasSkill({ skills: [] }, "c")).toBe(false);
  });

  it("are refused by name if the agent does not have them, or if they do not exist", async () => {
    await using made = await makeDir({ a: skill("a"), b: skill("b") });
    const { skills } = await load(made.dir);
    const agent = { name: "main", skills: ["a", "missing"] };
    expect(() => checkSkills(skills, agent, ["a"])).not.toThrow();
    for (const skillId of ["b", "missing", "never"]) {
      const detail = `The agent main has no skill \`${skillId}\`. There is \`a\`.`;
      expect(() => checkSkills(skills, agent, ["a", skillId])).toThrow(
        expect.objectContaining({ name: "skill-not-found", detail }),
      );
    }
  });

  it("reach the backend with the turn that was started with them, and are logged if they are skipped", async () => {
    await using made = await makeDir({ a: skill("a", "", "Be a."), bad: "nothing" });
    await using core = await startCore({ settings: { skillDirs: [made.dir] } });
    expect(await core.logged("skill.refused")).toMatchObject([{ skill: join(made.dir, "bad") }]);
    const turn = await core.start({ skillIds: ["a"] });
    expect(turn.skillIds).toEqual(["a"]);
    expect((await core.scripted.next()).turn.skills).toEqual([{ skillId: "a", body: "Be a." }]);
    await expect(core.start({ skillIds: ["bad"] })).rejects.toMatchObject({ name: "skill-not-found" });
  });
});
