import { execFileSync } from "node:child_process";
import { mkdtempSync, readdirSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import { type GatewayProcess, type ProcessOptions, root, runProcess, startProcess } from "#test/harness/process.ts";
import { createRest } from "#test/harness/rest.ts";
import manifest from "../../package.json" with { type: "json" };
import { agentWith, key } from "./configs.ts";

/** The gateway as installed from the result of `npm pack`, without optional dependencies. */
let folder: string;
let packed: string[];
let packedBytes: number;

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "gateway-install-"));
  const run = (cwd: string, ...args: string[]) => execFileSync("npm", args, { cwd, encoding: "utf8", stdio: "pipe" });
  const tarball = run(root, "pack", "--ignore-scripts", "--silent", "--pack-destination", folder).trim();
  execFileSync("tar", ["-xzf", join(folder, tarball), "-C", folder, "--strip-components=1"]);
  packedBytes = statSync(join(folder, tarball)).size;
  packed = readdirSync(folder).filter((name) => name !== tarball);
  // npm resolves every package of the manifest at the registry, as `npm ci` did before this test.
  const omit = ["--omit=dev", "--omit=optional", "--prefer-offline", "--no-audit", "--no-fund"];
  run(folder, "install", ...omit, "--ignore-scripts=false");
}, 300_000);
afterEach(() => rmSync(join(folder, "gateway.json5"), { force: true }));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

function tarballPath() {
  return join(folder, `agent-gateway-${manifest.version}.tgz`);
}
function npm() {
  return ["npm", "start", "--", "--port", "0"];
}
/** `npm start -- --port 0 …`, with only the production packages. */
function npmStart({ args = [], ...options }: ProcessOptions = {}): Promise<GatewayProcess> {
  return startProcess({
    cwd: folder,
    env: { npm_config_update_notifier: "false", LOG_LEVEL: "debug" },
    command: () => [...npm(), ...args],
    ...options,
  });
}

test("the package has the build and the files for users, and nothing else, in 2 MB", () => {
  const written = ["CHANGELOG.md", "LICENSE", "README.md", "SECURITY.md"];
  expect(packed.sort()).toEqual([...written, "dist", "generated", "package.json", "scripts"]);
  expect(readdirSync(join(folder, "generated"))).not.toContain("clients");
  expect(packedBytes, "after several builds it is larger: npm run build -- --clean").toBeLessThanOrEqual(2_000_000);
});

test("npm installs it globally, and it serves from an empty folder, with docs and console", async () => {
  const prefix = join(folder, "global");
  const flags = ["--omit=optional", "--prefer-offline", "--no-audit", "--no-fund"];
  execFileSync("npm", ["install", "--global", "--prefix", prefix, ...flags, tarballPath()], { stdio: "pipe" });
  await using gateway = await startProcess({
    command: () => [join(prefix, "bin/agent-gateway"), "serve", "--port", "0"],
  });
  for (const path of ["/docs", "/docs/errors.html", "/docs/llms.txt", "/console", "/openapi.json"])
    expect([path, (await fetch(gateway.url + path)).status]).toEqual([path, 200]);
  const [asset] = /\/console\/assets\/main-\w+\.js/.exec(await (await fetch(`${gateway.url}/console`)).text()) ?? [];
  const textFor = async (encoding: string) =>
    (await fetch(`${gateway.url}${asset}`, { headers: { "accept-encoding": encoding } })).text();
  const compressed = await textFor("gzip");
  expect(compressed).toContain("function");
  // The package has the script only in compressed form.
  expect(await textFor("identity")).toBe(compressed);
}, 300_000);

test("npx runs it from the package", async () => {
  const npx = ["npx", "--yes", "--prefer-offline", `--package=${tarballPath()}`, "agent-gateway"];
  const { code, out } = await runProcess({ command: () => [...npx, "--version"] });
  expect({ code, out }).toEqual({ code: 0, out: manifest.version });
}, 300_000);

test("it installs from its unpacked folder, with its own script and without development packages", () => {
  const installed = readdirSync(join(folder, "node_modules"));
  expect(installed).toContain("express");
  for (const name of ["typescript", "esbuild", "tsx", "vitest"]) expect(installed).not.toContain(name);
});

test.each([
  ["sqlite", { path: "./gateway.db" }, "libsql"],
  ["postgres", { url: "postgres://127.0.0.1/gateway" }, "pg"],
] as const)("a store of %s is refused with the command that installs its driver", async (type, where, driver) => {
  const config = {
    gateway: { rest: { auth: { keys: [{ name: "a", key: "a-key-of-sixteen" }] } } },
    agents: { main: { backend: "echo" } },
  };
  const refused = await runProcess({ cwd: folder, config: { ...config, store: { type, ...where } }, command: npm });
  expect(refused.code).toBe(1);
  const version = manifest.optionalDependencies[driver];
  expect(refused.err).toContain(
    `store.type is \`${type}\`, whose driver is not installed. Run: npm install ${driver}@${version}`,
  );
});

test("npm start passes its flags", async () => {
  await using gateway = await npmStart({ args: ["--host", "127.0.0.2"] });
  expect(gateway.url).toMatch(/^http:\/\/127\.0\.0\.2:\d+$/);
  expect(gateway.url).not.toContain(":18789");
});

test.each([
  ["npm alone", (gateway: GatewayProcess) => gateway.kill("SIGTERM")],
  ["the whole process group", (gateway: GatewayProcess) => gateway.killGroup("SIGTERM")],
  ["npm alone, as SIGINT", (gateway: GatewayProcess) => gateway.kill("SIGINT")],
])("a signal to %s causes one drain", async (_, stop) => {
  await using gateway = await npmStart({ config: agentWith({ delayMs: 1_200 }) });
  const reply = createRest(gateway.url, key).call("chat.send", { body: { message: "slow" } });
  await gateway.logged("turn.started");
  stop(gateway);
  expect(await reply).toMatchObject({ status: 200, json: { reply: "slow" } });
  const exit = await gateway.exited;
  expect(gateway.records.filter(({ event }) => event === "draining")).toHaveLength(1);
  expect(gateway.records.filter(({ event }) => event === "drained")).toHaveLength(1);
  expect(exit).toEqual({ code: 0, signal: null });
});
