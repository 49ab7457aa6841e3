import { execFile } from "node:child_process";
import { mkdirSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { expect, test } from "vitest";
import { programOf } from "#cli/typed.ts";
import { main, root } from "#test/harness/process.ts";
import { emptyFolder } from "./cli.ts";

const HOME = "/home/ada";
function program(file: string, cwd: string, files: string[] = [], PATH = "/usr/bin:/usr/local/bin") {
  return programOf({ file, cwd, env: { PATH }, exists: (one) => files.includes(one) });
}

test.each([
  ["an installed program", "/usr/local/bin/agent-gateway", HOME, [], "agent-gateway"],
  ["an installed program, from an npm script", "/usr/bin/agent-gateway", `${HOME}/app`, [], "agent-gateway"],
  [
    "npx in a clone",
    `${HOME}/.npm/_npx/651d/node_modules/.bin/agent-gateway`,
    `${HOME}/clone`,
    [],
    "npx agent-gateway",
  ],
  [
    "a project's own program",
    `${HOME}/app/node_modules/.bin/agent-gateway`,
    `${HOME}/app/src`,
    [],
    "npx agent-gateway",
  ],
  [
    "npm start in a clone",
    `${HOME}/clone/dist/main.js`,
    `${HOME}/clone`,
    [`${HOME}/clone/package-lock.json`],
    "npx agent-gateway",
  ],
  [
    "node in a folder of a clone",
    `${HOME}/clone/dist/main.js`,
    `${HOME}/clone/docs`,
    [`${HOME}/clone/package-lock.json`],
    "npx agent-gateway",
  ],
  [
    "node outside of the clone",
    `${HOME}/clone/dist/main.js`,
    `${HOME}/clone-2`,
    [`${HOME}/clone/package-lock.json`],
    `node ${HOME}/clone/dist/main.js`,
  ],
  [
    "a shim of pnpm",
    `${HOME}/app/node_modules/.pnpm/agent-gateway@1/node_modules/agent-gateway/dist/main.js`,
    `${HOME}/app`,
    [],
    "npx agent-gateway",
  ],
  ["the entry point of an image", "/app/dist/main.js", "/app", ["/usr/local/bin/agent-gateway"], "agent-gateway"],
  ["a unit of systemd", "/opt/my gateway/dist/main.js", "/", [], "node '/opt/my gateway/dist/main.js'"],
] as const)("a hint names the program as the user can type it: %s", (_, file, cwd, files, typed) => {
  expect(program(file, cwd, [...files])).toBe(typed);
});

test("the hint of a mistake names the program as it was started", async () => {
  const hintOf = async (file: string, cwd: string): Promise<string> => {
    const failed = await promisify(execFile)(process.execPath, [file, "sesions"], { cwd }).catch((error) => error);
    return /Next: (.*)/.exec(failed.stderr)?.[1] ?? "";
  };
  const project = emptyFolder();
  const local = join(project, "node_modules/.bin/agent-gateway");
  mkdirSync(join(project, "node_modules/.bin"), { recursive: true });
  symlinkSync(main, local);
  expect(await hintOf(local, project)).toBe("npx agent-gateway --help");
  expect(await hintOf(main, join(root, "docs"))).toBe("npx agent-gateway --help");
  expect(await hintOf(main, project)).toBe(`node ${main} --help`);
});
