import { execFileSync } from "node:child_process";
import { mkdir, rename, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { readPlainFile } from "#core/skills/read-skills.ts";
import { load, makeDir, skill } from "./skill-dirs.ts";

function matter(text: string) {
  return `---\n${text}\n---\nBody.`;
}
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
  "has no name": { text: matter("description: A."), reason: /^name is missing$/ },
  "has a number for a name": { text: matter("name: 7\ndescription: A."), reason: /^name is not/ },
  "has capitals in its name": { folder: "Abc", text: skill("Abc"), reason: /^name is not/ },
  "has a space in its name": { folder: "a b", text: skill("a b"), reason: /^name is not/ },
  "has an underscore in its name": { folder: "a_b", text: skill("a_b"), reason: /^name is not/ },
  "has a name that starts with a hyphen": { folder: "-a", text: skill("-a"), reason: /^name is not/ },
  "has a name that ends with a hyphen": { folder: "a-", text: skill("a-"), reason: /^name is not/ },
  "has two hyphens in a row in its name": { folder: "a--b", text: skill("a--b"), reason: /^name is not/ },
  "has a name of 65 letters": { folder: "a".repeat(65), text: skill("a".repeat(65)), reason: /^name is not/ },
  "has a name that is an operation's": { folder: "list", text: skill("list"), reason: /^the name list is reserved/ },
  "has another name than its folder": { text: skill("b"), reason: /^name is b, but the folder is a$/ },
  "has no description": { text: matter("name: a"), reason: /^description is missing$/ },
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
  "has metadata that are not a map": { text: skill("a", "metadata: [1]\n"), reason: /^metadata is not a map$/ },
  "is larger than 256 KiB": { text: skill("a", "", "x".repeat(256 * 1024)), reason: /larger than 256 KiB/ },
};

describe("a folder that is not a skill", () => {
  for (const [name, { folder = "a", text, reason }] of Object.entries(INVALID)) {
    it(`is reported and skipped, and affects no other folder: one that ${name}`, async () => {
      await using made = await makeDir({ [folder]: text, zebra: skill("zebra") });
      const { ids, invalid } = await load(made.dir);
      expect(ids).toEqual(["zebra"]);
      expect(invalid).toEqual([{ dir: join(made.dir, folder), reason: expect.stringMatching(reason) }]);
    });
  }

  it("is one whose name is already in use", async () => {
    await using first = await makeDir({ a: skill("a", "", "The first.") });
    await using second = await makeDir({ a: skill("a", "", "The second."), b: skill("b") });
    const { skills, invalid } = await load(first.dir, second.dir);
    expect(skills.find("a")?.body).toBe("The first.");
    expect(invalid).toEqual([{ dir: join(second.dir, "a"), reason: "another folder has the skill a" }]);
    expect(skills.find("b")).toBeDefined();
  });

  it("is one whose SKILL.md cannot be read", async () => {
    await using made = await makeDir({ b: skill("b") });
    await mkdir(join(made.dir, "a", "SKILL.md"), { recursive: true });
    const { ids, invalid } = await load(made.dir);
    expect(ids).toEqual(["b"]);
    expect(invalid).toEqual([{ dir: join(made.dir, "a"), reason: "SKILL.md cannot be read (EISDIR)" }]);
  });

  it("is one whose SKILL.md is a link or a pipe, wherever it leads, also if it was just replaced", async () => {
    await using made = await makeDir({ a: undefined, b: undefined, c: skill("c") });
    await using outside = await makeDir({ a: skill("a") });
    await symlink(join(outside.dir, "a", "SKILL.md"), join(made.dir, "a", "SKILL.md"));
    execFileSync("mkfifo", [join(made.dir, "b", "SKILL.md")]);
    const { ids, invalid } = await load(made.dir);
    expect(ids).toEqual(["c"]);
    expect(invalid.map(({ reason }) => reason)).toEqual([
      "SKILL.md cannot be read (ELOOP)",
      "SKILL.md cannot be read (it is not a file)",
    ]);
    // Nothing is checked before it is opened, so that nothing can be replaced in between.
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
    for (let n = 0; n < 200; n++) {
      const text = await readPlainFile(real, 1_000);
      expect(typeof text === "string" ? text : "name: c").toContain("name: c");
    }
    isOver = true;
    await swapping;
  });

  it("is a folder of skills that does not exist", async () => {
    await using made = await makeDir({ b: skill("b") });
    const nowhere = join(made.dir, "nowhere");
    const { ids, invalid } = await load(nowhere, made.dir);
    expect(ids).toEqual(["b"]);
    expect(invalid).toEqual([{ dir: nowhere, reason: "this folder of skills.dirs cannot be read (ENOENT)" }]);
  });

  it("counts the limits down to the number that is still allowed", async () => {
    const name = "a".repeat(64);
    await using made = await makeDir({
      [name]: matter(`name: ${name}\ndescription: ${"x".repeat(1_024)}`),
      "a-1-b2": skill("a-1-b2"),
      "7": matter('name: "7"\ndescription: A.'),
      // A character counts once, however many units it has.
      wave: matter(`name: wave\ndescription: ${"\u{1f30a}".repeat(1_024)}\ncompatibility: ${"\u{1f30a}".repeat(500)}`),
    });
    expect(await load(made.dir)).toMatchObject({ ids: ["7", "a-1-b2", name, "wave"], invalid: [] });
  });

  it("cannot change any object but its own with its metadata", async () => {
    await using made = await makeDir({ a: skill("a", "metadata: { __proto__: { polluted: yes }, b: c }\n") });
    const { skills } = await load(made.dir);
    expect(({} as Record<string, unknown>).polluted).toBeUndefined();
    expect(skills.find("a")?.metadata).toEqual(JSON.parse('{ "__proto__": "{\\"polluted\\":\\"yes\\"}", "b": "c" }'));
  });
});
