import { execFileSync } from "node:child_process";
import { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import { type GatewayProcess, type ProcessOptions, root, runProcess, startProcess } from "#test/harness/process.ts";
import { createRest } from "#test/harness/rest.ts";
import manifest from "../../package.json" with { type: "json" };
import { agentWith, key } from "./configs.ts";

/**
 * The gateway as somebody gets it who installs the package without optional dependencies: what `npm pack` puts in, and the packages that
 * it always runs with.
 */
let folder: string;
let packed: string[];

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "gateway-install-"));
  const pack = ["pack", "--ignore-scripts", "--silent", "--pack-destination", folder];
  const tarball = execFileSync("npm", pack, { cwd: root, encoding: "utf8" }).trim();
  execFileSync("tar", ["-xzf", join(folder, tarball), "-C", folder, "--strip-components=1"]);
  rmSync(join(folder, tarball));
  packed = readdirSync(folder);
  const { packages } = JSON.parse(readFileSync(join(root, "package-lock.json"), "utf8")) as {
    packages: Record<string, { dev?: boolean; devOptional?: boolean; optional?: boolean; link?: boolean }>;
  };
  const needed = Object.entries(packages).filter(
    ([path, { dev, devOptional, optional }]) => path !== "" && !dev && !devOptional && !optional,
  );
  for (const [path] of needed) {
    const filter = (source: string) => source === join(root, path) || !source.endsWith("/node_modules");
    cpSync(join(root, path), join(folder, path), { recursive: true, filter });
  }
});
afterEach(() => rmSync(join(folder, "gateway.json5"), { force: true }));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const npm = () => ["npm", "start", "--", "--port", "0"];
/** `npm start -- --port 0 …`, with nothing but the production packages. */
const npmStart = ({ args = [], ...options }: ProcessOptions = {}): Promise<GatewayProcess> =>
  startProcess({
    cwd: folder,
    env: { npm_config_update_notifier: "false", LOG_LEVEL: "debug" },
    command: () => [...npm(), ...args],
    ...options,
  });

test("the package holds what is built, generated and written for its users, and nothing else", () => {
  const written = ["CHANGELOG.md", "LICENSE", "README.md", "SECURITY.md"];
  expect(packed.sort()).toEqual([...written, "dist", "docs", "generated", "package.json", "scripts", "specs"]);
});

test("the package holds the script that npm runs when it installs from a folder", () => {
  execFileSync("npm", ["run", "--silent", "prepare"], { cwd: folder });
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

test("npm start passes its flags on", async () => {
  await using gateway = await npmStart({ args: ["--host", "127.0.0.2"] });
  expect(gateway.url).toMatch(/^http:\/\/127\.0\.0\.2:\d+$/);
  expect(gateway.url).not.toContain(":18789");
});

test.each([
  ["npm alone", (gateway: GatewayProcess) => gateway.kill("SIGTERM")],
  ["the whole process group", (gateway: GatewayProcess) => gateway.killGroup("SIGTERM")],
])("SIGTERM to %s drains once", async (_, stop) => {
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
