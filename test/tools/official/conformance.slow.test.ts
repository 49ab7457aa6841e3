import { spawn } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { readdir } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { expect, it } from "vitest";

const SUITE = resolve("node_modules/@modelcontextprotocol/conformance/dist/index.js");
const CLIENT = resolve("test/tools/official/conformance-client.ts");

type Check = { id: string; status: string; errorMessage?: string };

/** Runs a scenario of the official suite against the client of tool servers. Returns its checks. */
async function run(scenario: string, revision: string): Promise<Check[]> {
  const out = mkdtempSync(join(tmpdir(), "conformance-"));
  const command = `${process.execPath} --import tsx ${CLIENT}`;
  const args = ["--import", resolve("test/harness/fs-with-glob.mjs"), SUITE, "client", "--command", command];
  const which = ["--scenario", scenario, "--spec-version", revision, "-o", out];
  try {
    const child = spawn(process.execPath, [...args, ...which], { stdio: "ignore" });
    await new Promise((done) => child.on("close", done));
    const files = (await readdir(out, { recursive: true })).filter((name) => name.endsWith("checks.json"));
    return files.flatMap((file) => JSON.parse(readFileSync(join(out, file), "utf8")) as Check[]);
  } finally {
    rmSync(out, { recursive: true });
  }
}

// All required scenarios without authorization and without questions to users, which the gateway refuses.
it.each([
  ["initialize", "2025-11-25"],
  ["tools_call", "2025-11-25"],
  ["sse-retry", "2025-11-25"],
  ["json-schema-2020-12-preservation", "2025-11-25"],
  ["tools_call", "2026-07-28"],
  ["request-metadata", "2026-07-28"],
  ["http-standard-headers", "2026-07-28"],
  ["http-custom-headers", "2026-07-28"],
  ["http-invalid-tool-headers", "2026-07-28"],
  ["json-schema-ref-no-deref", "2026-07-28"],
  ["json-schema-2020-12-preservation", "2026-07-28"],
])("MUST pass the scenario for clients %s of %s", { timeout: 60_000 }, async (scenario, revision) => {
  const checks = await run(scenario, revision);
  expect(checks.filter(({ status }) => status === "SUCCESS").length).toBeGreaterThan(0);
  expect(checks.filter(({ status }) => status === "FAILURE")).toEqual([]);
});
