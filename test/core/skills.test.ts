import { execFileSync } from "node:child_process";
import { mkdir, mkdtemp, rename, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { readPlainFile } from "#core/skill-files.ts";
import { checkSkills, createSkills, hasSkill } from "#core/skills.ts";
import { startCore } from "./start-core.ts";

/** A folder of skill folders, by name; gone when the test ends. */
const makeDir = async (files: Record<string, string | Buffer | undefined>) => {
  const dir = await mkdtemp(join(tmpdir(), "skills-"));
  for (const [name, text] of Object.entries(files)) {
    await mkdir(join(dir, name), { recursive: true });
    if (text !== undefined) await writeFile(join(dir, name, "SKILL.md"), text);
  }
  return { dir, [Symbol.asyncDispose]: () => rm(dir, { recursive: true }) };
};

const skill = (name: string, more = "", body = "Do it well.") =>
  `---\nname: ${name}\ndescription: Does ${name}.\n${more}---\n${body}\n`;

const load = async (...dirs: string[]) => {
  const skills = createSkills();
  const { invalid, take } = await skills.read(dirs);
  take();
  return { skills, invalid, ids: skills.list().map(({ skillId }) => skillId) };
};

describe("reading skills", () => {
  it("takes every field of a SKILL.md, and its text without the front matter", async () => {
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

  it("needs no more than a name and a description", async () => {
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

  it("gives metadata as they are written, whatever YAML makes of them", async () => {
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

  it("lists them by name, those of the first folder first", async () => {
    await using first = await makeDir({ zebra: skill("zebra"), ant: skill("ant") });
    await using second = await makeDir({ bee: skill("bee") });
    expect((await load(first.dir, second.dir)).ids).toEqual(["ant", "zebra", "bee"]);
  });

  it("passes over files and over folders without a SKILL.md", async () => {
    await using made = await makeDir({ a: skill("a"), empty: undefined });
    await writeFile(join(made.dir, "README.md"), "not a skill");
    expect(await load(made.dir)).toMatchObject({ ids: ["a"], invalid: [] });
  });

  it("forgets what is not there any more when it reads again, and finds what is new", async () => {
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

  it("gives the bodies of the skills that are there", async () => {
    await using made = await makeDir({ a: skill("a", "", "Be a."), b: skill("b", "", "Be b.") });
    const { skills } = await load(made.dir);
    expect(skills.bodies(["b", "missing", "a"])).toEqual([
      { skillId: "b", body: "Be b." },
      { skillId: "a", body: "Be a." },
    ]);
  });
});

const matter = (text: string) => `---\n${text}\n---\nBody.`;
const INVALID: Record<string, { folder?: string; text: string; reason: RegExp }> = {
  "has no front matter": { text: "# Just text", reason: /does not begin with a front matter/ },
  "has a front matter that does not end": { text: "---\nname: a\ndescription: A.\n", reason: /front matter between/ },
  "has text before its front matter": { text: `hello\n${skill("a")}`, reason: /does not begin with a front matter/ },
  "has a front matter that is not YAML": { text: matter("name: [a"), reason: /front matter is not YAML/ },
  "has a front matter with a key twice": { text: matter("name: a\nname: a"), reason: /front matter is not YAML/ },
  "has a front matter with an alias": {
    text: matter("name: &n a\ndescription: *n"),
    reason: /front matter is not YAML/,
  },
  "has a list for a front matter": { text: matter("- name"), reason: /front matter is not a map/ },
  "has an empty front matter": { text: matter("# nothing"), reason: /front matter is not a map/ },
  "has no name": { text: matter("description: A."), reason: /^name is not/ },
  "has a number for a name": { text: matter("name: 7\ndescription: A."), reason: /^name is not/ },
  "has capitals in its name": { folder: "Abc", text: skill("Abc"), reason: /^name is not/ },
  "has a space in its name": { folder: "a b", text: skill("a b"), reason: /^name is not/ },
  "has an underscore in its name": { folder: "a_b", text: skill("a_b"), reason: /^name is not/ },
  "has a name that begins with a hyphen": { folder: "-a", text: skill("-a"), reason: /^name is not/ },
  "has a name that ends with a hyphen": { folder: "a-", text: skill("a-"), reason: /^name is not/ },
  "has two hyphens in a row in its name": { folder: "a--b", text: skill("a--b"), reason: /^name is not/ },
  "has a name of 65 letters": { folder: "a".repeat(65), text: skill("a".repeat(65)), reason: /^name is not/ },
  "has another name than its folder": { text: skill("b"), reason: /^name is b, but the folder is a$/ },
  "has no description": { text: matter("name: a"), reason: /^description is not/ },
  "has an empty description": { text: matter('name: a\ndescription: "  "'), reason: /^description is not/ },
  "has a list for a description": { text: matter("name: a\ndescription: [A]"), reason: /^description is not/ },
  "has a description of 1025 characters": {
    text: matter(`name: a\ndescription: ${"x".repeat(1_025)}`),
    reason: /^description is not/,
  },
  "has a description of 1025 characters that are two units each": {
    text: matter(`name: a\ndescription: ${"\u{1f30a}".repeat(1_025)}`),
    reason: /^description is not/,
  },
  "has an empty compatibility": {
    text: skill("a", "compatibility: ''\n"),
    reason: /^compatibility is not a text of 1 to 500 characters$/,
  },
  "has a compatibility of 501 characters": {
    text: skill("a", `compatibility: ${"x".repeat(501)}\n`),
    reason: /^compatibility is not a text of 1 to 500 characters$/,
  },
  "has metadata with an alias": {
    text: skill("a", "metadata: { b: &x c, d: *x }\n"),
    reason: /front matter is not YAML/,
  },
  "has metadata that are no map": { text: skill("a", "metadata: [1]\n"), reason: /^metadata is not a map$/ },
  "is larger than 256 KiB": { text: skill("a", "", "x".repeat(256 * 1024)), reason: /larger than 256 KiB/ },
};

describe("a folder that is no skill", () => {
  for (const [name, { folder = "a", text, reason }] of Object.entries(INVALID)) {
    it(`is told of and skipped, and stops no other: one that ${name}`, async () => {
      await using made = await makeDir({ [folder]: text, zebra: skill("zebra") });
      const { ids, invalid } = await load(made.dir);
      expect(ids).toEqual(["zebra"]);
      expect(invalid).toEqual([{ dir: join(made.dir, folder), reason: expect.stringMatching(reason) }]);
    });
  }

  it("is one whose name was read before", async () => {
    await using first = await makeDir({ a: skill("a", "", "The first.") });
    await using second = await makeDir({ a: skill("a", "", "The second."), b: skill("b") });
    const { skills, invalid } = await load(first.dir, second.dir);
    expect(skills.find("a")?.body).toBe("The first.");
    expect(invalid).toEqual([{ dir: join(second.dir, "a"), reason: "a skill a was read before" }]);
    expect(skills.find("b")).toBeDefined();
  });

  it("is one whose SKILL.md cannot be read", async () => {
    await using made = await makeDir({ b: skill("b") });
    await mkdir(join(made.dir, "a", "SKILL.md"), { recursive: true });
    const { ids, invalid } = await load(made.dir);
    expect(ids).toEqual(["b"]);
    expect(invalid).toEqual([{ dir: join(made.dir, "a"), reason: "SKILL.md cannot be read (EISDIR)" }]);
  });

  it("is one whose SKILL.md is a link or a pipe, wherever it leads, also when it became one just now", async () => {
    await using made = await makeDir({ a: undefined, b: undefined, c: skill("c") });
    await using outside = await makeDir({ a: skill("a") });
    await symlink(join(outside.dir, "a", "SKILL.md"), join(made.dir, "a", "SKILL.md"));
    execFileSync("mkfifo", [join(made.dir, "b", "SKILL.md")]);
    const { ids, invalid } = await load(made.dir);
    expect(ids).toEqual(["c"]);
    expect(invalid.map(({ reason }) => reason)).toEqual([
      "SKILL.md cannot be read (ELOOP)",
      "SKILL.md cannot be read (it is no file)",
    ]);
    // Nothing is looked at before it is opened, so that nothing can be swapped in between.
    const [real, link] = [join(made.dir, "c", "SKILL.md"), join(made.dir, "c", "link")];
    await symlink(join(outside.dir, "a", "SKILL.md"), link);
    let isOver = false;
    const swap = async () => {
      while (!isOver) {
        await rename(link, real);
        await writeFile(link, skill("c"));
        await rename(link, real);
        await symlink(join(outside.dir, "a", "SKILL.md"), link);
      }
    };
    const swapping = swap();
    for (let n = 0; n < 200; n++)
      expect((await readPlainFile(real, 1_000).catch(() => "name: c")).includes("name: c")).toBe(true);
    isOver = true;
    await swapping;
  });

  it("is a folder of skills that is not there", async () => {
    await using made = await makeDir({ b: skill("b") });
    const nowhere = join(made.dir, "nowhere");
    const { ids, invalid } = await load(nowhere, made.dir);
    expect(ids).toEqual(["b"]);
    expect(invalid).toEqual([{ dir: nowhere, reason: "the folder cannot be read (ENOENT)" }]);
  });

  it("takes limits as what is still allowed", async () => {
    const name = "a".repeat(64);
    await using made = await makeDir({
      [name]: matter(`name: ${name}\ndescription: ${"x".repeat(1_024)}`),
      "a-1-b2": skill("a-1-b2"),
      "7": matter('name: "7"\ndescription: A.'),
      // A character is one, however many units it has.
      wave: matter(`name: wave\ndescription: ${"\u{1f30a}".repeat(1_024)}\ncompatibility: ${"\u{1f30a}".repeat(500)}`),
    });
    expect(await load(made.dir)).toMatchObject({ ids: ["7", "a-1-b2", name, "wave"], invalid: [] });
  });

  it("does not change any object but its own with its metadata", async () => {
    await using made = await makeDir({ a: skill("a", "metadata: { __proto__: { polluted: yes }, b: c }\n") });
    const { skills } = await load(made.dir);
    expect(({} as Record<string, unknown>).polluted).toBeUndefined();
    expect(skills.find("a")?.metadata).toEqual(JSON.parse('{ "__proto__": "{\\"polluted\\":\\"yes\\"}", "b": "c" }'));
  });
});

describe("skills of an agent", () => {
  it("are those that it lists, or all", () => {
    expect(hasSkill({ skills: ["a", "b"] }, "b")).toBe(true);
    expect(hasSkill({ skills: ["a", "b"] }, "c")).toBe(false);
    expect(hasSkill({ skills: ["*"] }, "c")).toBe(true);
    expect(hasSkill({ skills: [] }, "c")).toBe(false);
  });

  it("are refused by name when the agent lacks them, or nobody has them", async () => {
    await using made = await makeDir({ a: skill("a"), b: skill("b") });
    const { skills } = await load(made.dir);
    const agent = { name: "main", skills: ["a", "missing"] };
    expect(() => checkSkills(skills, agent, ["a"])).not.toThrow();
    for (const skillId of ["b", "missing", "never"]) {
      const detail = `The agent main has no skill ${skillId} (there is a).`;
      expect(() => checkSkills(skills, agent, ["a", skillId])).toThrow(
        expect.objectContaining({ name: "skill-not-found", detail }),
      );
    }
  });

  it("reach the backend with the turn that was started with them, and are logged when they are skipped", async () => {
    await using made = await makeDir({ a: skill("a", "", "Be a."), bad: "nothing" });
    await using core = await startCore({ settings: { skillDirs: [made.dir] } });
    expect(await core.logged("skill.refused")).toMatchObject([{ skill: join(made.dir, "bad") }]);
    const turn = await core.start({ skillIds: ["a"] });
    expect(turn.skillIds).toEqual(["a"]);
    expect((await core.scripted.next()).turn.skills).toEqual([{ skillId: "a", body: "Be a." }]);
    await expect(core.start({ skillIds: ["bad"] })).rejects.toMatchObject({ name: "skill-not-found" });
  });
});
