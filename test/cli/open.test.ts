import {
  chmodSync,
  existsSync,
  mkdirSync,
  readFileSync,
  statSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { readdir } from "node:fs/promises";
import { dirname, join } from "node:path";
import { afterEach, expect, test, vi } from "vitest";
import { openSecretLink } from "#cli/browser.ts";
import { Gateway } from "#generated/clients/typescript/src/index.ts";
import { startProcess } from "#test/harness/process.ts";
import { emptyFolder } from "./cli.ts";
import { startCommands } from "./gateway.ts";

const { run, gateway } = await startCommands();
afterEach(() => void vi.unstubAllEnvs());

/** A home folder, and a program instead of the browser that stores its arguments and the opened page. */
function desk(): { home: string; path: string; seen: string } {
  const home = emptyFolder();
  const bin = emptyFolder();
  const seen = emptyFolder();
  const script = `#!/bin/sh\nprintf '%s\\n' "$@" > "${seen}/args"\ncat "$1" > "${seen}/page"\nmv "${seen}/args" "${seen}/opened"\n`;
  writeFileSync(join(bin, "xdg-open"), script);
  chmodSync(join(bin, "xdg-open"), 0o755);
  return { home, seen, path: `${bin}:${process.env.PATH}` };
}
async function until(isSo: () => boolean | Promise<boolean>): Promise<void> {
  while (!(await isSo())) await new Promise((resolve) => setTimeout(resolve, 20));
}

test.skipIf(process.platform !== "linux")(
  "open MUST start the browser without the code: with a page that only this user can read [needs Linux]",
  async () => {
    const { home, path, seen } = desk();
    const { code, out } = await run(["open"], { terminal: true, env: { HOME: home, PATH: path } });
    const link = /http\S+#code=([\w-]{43})/.exec(out);
    expect([code, link]).toEqual([0, expect.anything()]);
    await until(() => existsSync(join(seen, "opened")));
    const [page = "", ...others] = readFileSync(join(seen, "opened"), "utf8").trimEnd().split("\n");
    expect(others).toEqual([]);
    expect(page).toMatch(new RegExp(`^${home}/agent-gateway-open-\\w{6}/sign-in.html$`));
    expect([statSync(page).mode & 0o777, statSync(dirname(page)).mode & 0o777]).toEqual([0o600, 0o700]);
    expect(readFileSync(join(seen, "page"), "utf8")).toContain(`content="0;url=${link?.[0]}"`);
    const signIn = await new Gateway({ url: gateway.url, key: link?.[1] ?? "" }).codes.redeem();
    expect(signIn.kind).toBe("console");
  },
);

test("open fails with the gateway's reason if no listener serves the console", async () => {
  const key = "an-admin-key-of-this-test";
  const rest = { auth: { keys: [{ name: "ops", key, scopes: ["admin"] }] } };
  const off = await startProcess({
    config: {
      gateway: { defaultAgent: "main", rest, console: { enabled: false } },
      agents: { main: { backend: "echo" } },
    },
  });
  const { code, out, err } = await run(["open"], { env: { GATEWAY_URL: off.url, REST_API_KEY: key } });
  expect([code, out, err]).toEqual([5, "", expect.stringContaining("`console` is off")]);
});

test("the page of a link MUST be deleted once its code has expired, and an old one by the next command", async () => {
  const { home, path } = desk();
  const elsewhere = emptyFolder();
  vi.stubEnv("HOME", home).stubEnv("PATH", path).stubEnv("TMPDIR", home);
  const old = join(home, "agent-gateway-open-abc123");
  const others = join(home, "agent-gateway-open-ours");
  for (const folder of [old, others]) {
    mkdirSync(folder);
    writeFileSync(join(folder, "sign-in.html"), "");
    utimesSync(folder, 1, 1);
  }
  writeFileSync(join(elsewhere, "sign-in.html"), "");
  utimesSync(elsewhere, 1, 1);
  symlinkSync(elsewhere, join(home, "agent-gateway-open-link01"));
  mkdirSync(join(home, "agent-gateway-open-empty1"));
  utimesSync(join(home, "agent-gateway-open-empty1"), 1, 1);
  await openSecretLink("http://127.0.0.1:1/console#code=a", 1_000);
  expect(existsSync(old)).toBe(false);
  expect(await readdir(home)).toHaveLength(3);
  await until(async () => (await readdir(home)).length === 2);
  expect(existsSync(others)).toBe(true);
  expect(existsSync(join(elsewhere, "sign-in.html"))).toBe(true);
});

test("the page of a link MUST hold the address as text, whatever characters it has", async () => {
  const { home, path, seen } = desk();
  vi.stubEnv("HOME", home).stubEnv("PATH", path).stubEnv("TMPDIR", home);
  await openSecretLink(`http://127.0.0.1:1/"><script>'&amp;`, 20_000);
  await until(() => existsSync(join(seen, "opened")));
  expect(readFileSync(join(seen, "page"), "utf8")).toContain(
    "url=http://127.0.0.1:1/&#34;&#62;&#60;script&#62;&#39;&#38;amp;",
  );
});
