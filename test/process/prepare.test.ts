import { spawnSync } from "node:child_process";
import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { root } from "#test/harness/process.ts";
import manifest from "../../package.json" with { type: "json" };

/** A clone after `npm ci --omit=dev`, without development packages. */
function clone(): string {
  const folder = mkdtempSync(join(tmpdir(), "gateway-clone-"));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  cpSync(join(root, "scripts/prepare.mjs"), join(folder, "scripts/prepare.mjs"));
  return folder;
}
function prepare(cwd: string, ...options: string[]) {
  return spawnSync(process.execPath, [...options, "scripts/prepare.mjs"], { cwd, encoding: "utf8" });
}

test("prepare leaves an existing build if the tools to build are missing", () => {
  const folder = clone();
  mkdirSync(join(folder, "dist"));
  writeFileSync(join(folder, "dist/main.js"), "built before");
  expect(prepare(folder)).toMatchObject({ status: 0, stderr: "" });
  expect(readFileSync(join(folder, "dist/main.js"), "utf8")).toBe("built before");
});

test("prepare prints the next step if there is no build and no tools to build", () => {
  const { status, stderr } = prepare(clone());
  expect(status).toBe(1);
  expect(stderr).toMatch(/^dist\/ is not built, .* Run: npm ci && npm ci --omit=dev\n$/);
});

test("on Windows prepare creates the `exec` that npm start uses, because the shell there has none", () => {
  const folder = clone();
  const windows = `data:text/javascript,Object.defineProperty(process, "platform", { value: "win32" })`;
  prepare(folder, "--import", windows);
  expect(readFileSync(join(folder, "node_modules/.bin/exec.cmd"), "utf8")).toBe("@%*\r\n");
  const elsewhere = clone();
  prepare(elsewhere);
  expect(existsSync(join(elsewhere, "node_modules"))).toBe(false);
  expect(manifest.scripts.start).toMatch(/^exec node /);
});
