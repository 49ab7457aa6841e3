import { spawnSync } from "node:child_process";
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  rmSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { root } from "#test/harness/process.ts";

function copy(): string {
  const folder = mkdtempSync(join(tmpdir(), "gateway-build-"));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const pages = ["docs", "README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md"];
  const others = ["src", "specs", "generated", "scripts", "node_modules", "package.json", "tsconfig.json"];
  for (const name of [...pages, ...others]) symlinkSync(join(root, name), join(folder, name));
  return folder;
}

test("a build keeps files that a running gateway has not loaded yet, and deletes those older than a day", () => {
  const folder = copy();
  const chunk = (name: string) => join(folder, "dist/chunks", name);
  mkdirSync(join(folder, "dist/chunks"), { recursive: true });
  for (const name of ["of-the-last.js", "of-long-ago.js"]) writeFileSync(chunk(name), "");
  const longAgo = new Date(Date.now() - 25 * 3_600_000);
  utimesSync(chunk("of-long-ago.js"), longAgo, longAgo);
  const { status, stderr } = spawnSync(process.execPath, ["--import", "tsx", "scripts/build.ts"], { cwd: folder });
  expect([status, String(stderr)]).toEqual([0, ""]);
  expect([existsSync(chunk("of-the-last.js")), existsSync(chunk("of-long-ago.js"))]).toEqual([true, false]);
  expect(readdirSync(join(folder, "dist")).sort()).toEqual(["chunks", "console", "docs", "main.js"]);
});
