import { chmodSync, mkdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { folder, load, refusal, refused, warned, withSections } from "./configs.ts";

function skills(...dirs: unknown[]) {
  return { skills: { dirs } };
}

describe("a folder of skills", () => {
  test("that does not exist is refused with its place, its path and the next step", async () => {
    const [line] = await refusal(`{ agents: { main: { backend: "echo" } },\n  skills: { dirs: ["./skilz"] } }`);
    expect(line).toBe(
      'gateway.json5:2:20: skills.dirs[0] names the folder `./skilz`, which cannot be read: it does not exist. Create it, or name another one. It is resolved relative to the configuration file. If it may be absent, write `{ path: "./skilz", optional: true }`.',
    );
    expect(await refused(skills({ path: "./skilz" }))).toEqual([
      expect.stringMatching(/^skills\.dirs\[0\]\.path names the folder `\.\/skilz`, which cannot be read/),
    ]);
  });

  test("that is optional may be missing, as may the default one", async () => {
    const { config } = await load(withSections(skills({ path: "/nowhere/at/all", optional: true })));
    expect(config.skills.dirs).toEqual([{ path: "/nowhere/at/all", optional: true }]);
    const { config: usual, file } = await load(withSections({}));
    expect(usual.skills.dirs).toEqual([{ path: join(file as string, "../skills"), optional: true }]);
  });

  test("that is a file is refused, optional or not", async () => {
    const file = join(folder(), "file");
    writeFileSync(file, "");
    expect(await refused(skills({ path: file, optional: true }))).toEqual([
      `skills.dirs[0].path names the folder \`${file}\`, which cannot be read: it is not a folder, or not in one. Name another one.`,
    ]);
  });

  test.skipIf(process.getuid?.() === 0)("that cannot be read is refused, optional or not", async () => {
    const dir = folder();
    chmodSync(dir, 0);
    try {
      expect((await refused(skills({ path: dir, optional: true }))).join()).toContain("the gateway's user may not");
    } finally {
      chmodSync(dir, 0o700);
    }
  });
});

test("an unknown skill of an agent causes a warning, with the intended name", async () => {
  const dir = folder();
  const agents = (...names: string[]) => ({ agents: { main: { backend: "echo", skills: names } }, ...skills(dir) });
  const said = "agents.main.skills[0] names a skill that no folder of `skills.dirs` has; ";
  expect(await warned(agents("summarize"))).toEqual([`${said}there is none yet.`]);
  mkdirSync(join(dir, "summarise"));
  expect(await warned(agents("summarize"))).toEqual([`${said}did you mean \`summarise\`?`]);
  expect(await warned(agents("translate"))).toEqual([`${said}there is \`summarise\`.`]);
  expect(await warned(agents("summarise", "*"))).toEqual([]);
  rmSync(join(dir, "summarise"), { recursive: true });
});
