import { execFileSync } from "node:child_process";
import { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import { type GatewayProcess, type ProcessOptions, root, startProcess } from "#test/harness/process.ts";
import { createRest } from "#test/harness/rest.ts";
import { agentWith, key } from "./configs.ts";

/** The gateway as somebody gets it who installs the package: what `npm pack` puts in, and the packages that it runs with. */
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
    packages: Record<string, { dev?: boolean; devOptional?: boolean }>;
  };
  const needed = Object.entries(packages).filter(([path, { dev, devOptional }]) => path !== "" && !dev && !devOptional);
  for (const [path] of needed) {
    const filter = (source: string) => source === join(root, path) || !source.endsWith("/node_modules");
    cpSync(join(root, path), join(folder, path), { recursive: true, filter });
  }
});
afterEach(() => rmSync(join(folder, "gateway.json5"), { force: true }));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** `npm start -- --port 0 …`, with nothing but the production packages. */
const npmStart = ({ args = [], ...options }: ProcessOptions = {}): Promise<GatewayProcess> =>
  startProcess({
    cwd: folder,
    env: { npm_config_update_notifier: "false", LOG_LEVEL: "debug" },
    command: () => ["npm", "start", "--", "--port", "0", ...args],
    ...options,
  });

test("the package holds what is built, generated and written for its users, and nothing else", () => {
  const written = ["CHANGELOG.md", "LICENSE", "README.md", "SECURITY.md"];
  expect(packed.sort()).toEqual([...written, "dist", "docs", "generated", "package.json", "specs"]);
});

test("npm start answers /healthz and a message, with no development package there", async () => {
  for (const name of ["typescript", "esbuild", "tsx", "vitest"])
    expect(readdirSync(join(folder, "node_modules"))).not.toContain(name);
  await using gateway = await npmStart();
  expect(await (await fetch(`${gateway.url}/healthz`)).json()).toMatchObject({ status: "ok" });
  const rest = createRest(gateway.url, gateway.secrets.REST_API_KEY);
  expect(await rest.call("chat.send", { body: { message: "Hi" } })).toMatchObject({ json: { reply: "Hi" } });
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
