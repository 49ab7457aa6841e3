import { execFile, execFileSync } from "node:child_process";
import { cpSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it, onTestFinished } from "vitest";
import { root } from "#test/harness/process.ts";
import manifest from "../../package.json" with { type: "json" };
import { startRegistry } from "./registry.ts";

const { version } = manifest;
const tokens = { NPM_TOKEN: "npm_0123456789abcdef", PYPI_TOKEN: "pypi-0123456789abcdef" };
const pypiCredentials = btoa(`__token__:${tokens.PYPI_TOKEN}`);

function git(cwd: string, ...args: string[]) {
  return execFileSync("git", ["-c", "user.name=Test", "-c", "user.email=test@example.com", ...args], { cwd });
}

/** A clone at its release's tag, with the real clients and a gateway that is fast to build. */
function clone(): { folder: string; home: string; temporary: string } {
  const base = mkdtempSync(join(tmpdir(), "clone-"));
  onTestFinished(() => rmSync(base, { recursive: true, force: true }));
  const [folder, home, temporary] = [join(base, "clone"), join(base, "home"), join(base, "tmp")];
  mkdirSync(temporary);
  mkdirSync(home);
  cpSync(join(root, "generated/clients"), join(folder, "generated/clients"), {
    recursive: true,
    filter: (path) => !path.includes("__pycache__"),
  });
  const build = `
import { cpSync, mkdirSync, writeFileSync } from "node:fs";
import { execFileSync } from "node:child_process";
if (process.env.NPM_TOKEN || process.env.PYPI_TOKEN) throw new Error("A build has a token.");
mkdirSync("dist/clients/python", { recursive: true });
writeFileSync("dist/main.js", "");
cpSync("generated/clients/typescript", "dist/clients/typescript", { recursive: true });
const code = "import build_backend as b; to = '../../../dist/clients/python'; b.build_sdist(to); b.build_wheel(to)";
execFileSync("python3", ["-B", "-c", code], { cwd: "generated/clients/python" });
`;
  writeFileSync(join(folder, "build.mjs"), build);
  writeFileSync(join(folder, ".gitignore"), "dist/\n");
  const { name, files, description } = manifest;
  const scripts = { prepack: "node build.mjs", "build:clients": "node build.mjs", prepare: "exit 1" };
  writeFileSync(
    join(folder, "package.json"),
    JSON.stringify({ name, version, description, private: true, files, scripts }),
  );
  git(folder, "init", "--quiet");
  git(folder, "add", "--all");
  git(folder, "commit", "--quiet", "--message", "Release");
  git(folder, "tag", `v${version}`);
  return { folder, home, temporary };
}

async function start() {
  const { folder, home, temporary } = clone();
  const registry = await startRegistry({ temporary });
  onTestFinished(() => registry[Symbol.asyncDispose]());
  const run = (env: Record<string, string>, ...args: string[]) =>
    new Promise<{ code: number; stdout: string; stderr: string }>((ended) => {
      const tsx = join(root, "node_modules/tsx/dist/esm/index.mjs");
      const child = execFile(
        process.execPath,
        ["--import", tsx, join(root, "scripts/release.ts"), "publish", ...args],
        {
          cwd: folder,
          env: {
            PATH: process.env.PATH,
            HOME: home,
            TMPDIR: temporary,
            npm_config_registry: registry.url,
            PYPI_URL: `${registry.url}/legacy/`,
            ...env,
          },
        },
        (_, stdout, stderr) => ended({ code: child.exitCode ?? -1, stdout, stderr }),
      );
    });
  return { folder, home, temporary, registry, run };
}

describe("npm run release -- publish", () => {
  it("publishes the gateway and the clients, and nothing twice", async () => {
    const { folder, temporary, registry, run } = await start();
    const first = await run(tokens);
    expect(first).toMatchObject({ code: 0, stderr: "" });
    expect(first.stdout).toContain(`agent-gateway ${version} is published to ${registry.url}/.`);
    const all = registry.published.map(({ name, authorization }) => [name, authorization]);
    expect(all).toEqual([
      ["agent-gateway", `Bearer ${tokens.NPM_TOKEN}`],
      ["@agent-gateway/client", `Bearer ${tokens.NPM_TOKEN}`],
      ["agent-gateway-client", `Basic ${pypiCredentials}`],
      ["agent-gateway-client", `Basic ${pypiCredentials}`],
    ]);
    const [gateway, , wheel, sdist] = registry.published;
    expect(gateway?.manifest).not.toHaveProperty("private");
    expect(gateway?.files.sort()).toEqual(["package/dist/main.js", "package/package.json"]);
    expect(sdist).toMatchObject({ files: [`agent_gateway_client-${version}.tar.gz`], version });
    const form = { ":action": "file_upload", filetype: "sdist", pyversion: "source", metadata_version: "2.1", version };
    expect(sdist?.manifest).toMatchObject({ ...form, requires_python: ">=3.9" });
    expect(wheel).toMatchObject({ files: [`agent_gateway_client-${version}-py3-none-any.whl`], version });
    expect(wheel?.manifest).toMatchObject({ filetype: "bdist_wheel", pyversion: "py3" });

    const again = await run(tokens);
    expect(again).toMatchObject({ code: 0, stderr: "" });
    for (const name of ["agent-gateway", "@agent-gateway/client", "agent-gateway-client"])
      expect(again.stdout).toContain(`${name} ${version} is already at ${registry.url}`);
    expect(registry.published).toHaveLength(4);

    // No token in arguments, in files or in the output; the file for npm is readable only by its user, and no file remains.
    const texts = [...registry.seen, JSON.stringify([first, again])].join("\n");
    for (const secret of [...Object.values(tokens), pypiCredentials]) expect(texts).not.toContain(secret);
    expect(texts).toMatch(/^600 registry=/m);
    expect(readdirSync(temporary).filter((name) => name.startsWith("publish-"))).toEqual([]);
    expect(readFileSync(join(folder, "package.json"), "utf8")).toContain('"private":true');
  });

  it("uses npm's configuration of the user, but not its token", async () => {
    const { home, registry, run } = await start();
    const { host } = new URL(registry.url);
    const lines = ["user-agent=as configured", `//${host}/:_authToken=other`, `email=\${NPM_TOKEN}`];
    writeFileSync(join(home, ".npmrc"), `${lines.join("\n")}\n`);
    expect(await run({ NPM_TOKEN: tokens.NPM_TOKEN })).toMatchObject({ code: 0, stderr: "" });
    const found = registry.published.map(({ authorization, agent }) => [authorization, agent]);
    expect(found).toEqual(Array(2).fill([`Bearer ${tokens.NPM_TOKEN}`, "as configured"]));
  });

  it("publishes only to the registry whose token is set", async () => {
    const { registry, run } = await start();
    const { code, stdout } = await run({ PYPI_TOKEN: tokens.PYPI_TOKEN });
    expect(code).toBe(0);
    expect(stdout).toContain(
      `@agent-gateway/client ${version} is not published to ${registry.url}/: NPM_TOKEN is not set.`,
    );
    expect(registry.requests).toEqual(["POST /legacy/", "POST /legacy/"]);
  });

  it.each([
    ["--dry-run", {}],
    ["npm's dry run", { npm_config_dry_run: "true" }],
  ] as const)("contacts no registry and builds nothing with %s", async (option, env) => {
    const { folder, registry, run } = await start();
    const { code, stdout } = await run(
      { NPM_TOKEN: tokens.NPM_TOKEN, ...env },
      ...(option === "--dry-run" ? [option] : []),
    );
    expect([code, stdout]).toEqual([
      0,
      `agent-gateway ${version} would be published to ${registry.url}/, if it is not there yet.
@agent-gateway/client ${version} would be published to ${registry.url}/, if it is not there yet.
agent-gateway-client ${version} is not published to ${registry.url}/legacy/: PYPI_TOKEN is not set.
`,
    ]);
    expect(registry.requests).toEqual([]);
    expect(readdirSync(folder)).not.toContain("dist");
  });

  it("refuses without a token, a clean tree, the tag, or an address that may get a token", async () => {
    const { folder, registry, run } = await start();
    const { url } = registry;
    const refused = async (env: Record<string, string>, words: string) => {
      const { code, stderr } = await run(env);
      expect([code, stderr]).toEqual([1, expect.stringContaining(words)]);
    };
    await Promise.all([
      refused({}, `Set NPM_TOKEN to publish to ${url}/, PYPI_TOKEN to publish to ${url}/legacy/.`),
      refused({ ...tokens, NPM_TOKEN: "npm_ €" }, "NPM_TOKEN has characters that no token has"),
      refused({ ...tokens, PYPI_URL: "http://pypi.example/legacy/" }, "clear text. Use https."),
      refused({ ...tokens, npm_config_registry: "http://npm.example/" }, "clear text. Use https."),
      refused({ ...tokens, PYPI_URL: "https://me:secret@pypi.example/" }, "`PYPI_URL` has a user or a password."),
      refused({ ...tokens, PYPI_URL: "pypi" }, "`PYPI_URL` is not an address."),
    ]);
    git(folder, "commit", "--quiet", "--allow-empty", "--message", "More");
    await refused(tokens, `This commit is not tagged v${version}.`);
    writeFileSync(join(folder, "new"), "");
    await refused(tokens, "There are changes that are not committed.");
    expect(registry.requests).toEqual([]);
  });

  it.each([
    [302, ""],
    [500, "x".repeat(10_000_000)],
  ])("reports an upload answered with %i, without the token", async (status, body) => {
    const { registry, run } = await start();
    registry.answerWith(status, `${body.slice(0, 100)} ${tokens.PYPI_TOKEN} ${pypiCredentials} \u001b[2J ${body}`);
    const { code, stderr } = await run({ PYPI_TOKEN: tokens.PYPI_TOKEN });
    expect([code, stderr]).toEqual([1, expect.stringContaining("refused agent_gateway_client")]);
    expect(stderr).toContain("$PYPI_TOKEN $PYPI_TOKEN [2J");
    expect(stderr.length).toBeLessThan(6_000);
    expect(registry.requests).toHaveLength(1);
  });

  it("reports npm's error, without the token", async () => {
    const { registry, run } = await start();
    registry.answerWith(403, JSON.stringify({ error: `No ${tokens.NPM_TOKEN} here` }));
    const { code, stdout, stderr } = await run({ NPM_TOKEN: tokens.NPM_TOKEN });
    expect([code, stderr]).toEqual([1, expect.stringContaining("E403")]);
    expect(stdout + stderr).not.toContain(tokens.NPM_TOKEN);
  });
});
