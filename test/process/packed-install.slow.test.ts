import { execFileSync } from "node:child_process";
import { existsSync, mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { root, startProcess } from "#test/harness/process.ts";
import { createRest } from "#test/harness/rest.ts";

// npm resolves every package of the manifest at the registry, as `npm ci` did before this test could run.
test("the packed package installs without development packages from its unpacked folder, and starts", {
  timeout: 300_000,
}, async () => {
  const folder = mkdtempSync(join(tmpdir(), "gateway-packed-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const npm = (cwd: string, ...args: string[]) => execFileSync("npm", args, { cwd, encoding: "utf8", stdio: "pipe" });
  const tarball = npm(root, "pack", "--ignore-scripts", "--silent", "--pack-destination", folder).trim();
  execFileSync("tar", ["-xzf", tarball, "--strip-components=1"], { cwd: folder });

  npm(folder, "install", "--omit=dev", "--prefer-offline", "--no-audit", "--no-fund", "--ignore-scripts=false");

  const installed = readdirSync(join(folder, "node_modules"));
  expect(installed).toContain("express");
  for (const name of ["typescript", "esbuild", "tsx", "vitest"]) expect(installed).not.toContain(name);
  expect(existsSync(join(folder, "dist/main.js"))).toBe(true);
  await using gateway = await startProcess({ cwd: folder, command: () => ["npm", "start", "--", "--port", "0"] });
  const rest = createRest(gateway.url, gateway.secrets.REST_API_KEY);
  expect(await rest.call("chat.send", { body: { message: "Hi" } })).toMatchObject({ json: { reply: "Hi" } });
});
