// biome-ignore-all lint/suspicious/noTemplateCurlyInString: references in a configuration look like that.
import { spawnSync } from "node:child_process";
import { mkdirSync, symlinkSync, writeFileSync } from "node:fs";
import { networkInterfaces } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { findAddress } from "#cli/address.ts";
import { emptyFolder, runCli } from "./cli.ts";

/** A folder with a configuration, and perhaps with `gateway.env`. */
function folderWith(config: object | string, env?: string, name = "gateway.json5"): string {
  const folder = emptyFolder();
  writeFileSync(join(folder, name), typeof config === "string" ? config : JSON.stringify(config));
  if (env !== undefined) writeFileSync(join(folder, "gateway.env"), env);
  return join(folder, name);
}

const FOREIGN = "a-secret-that-is-not-the-gateways";
const env = { CLOUD_KEY: FOREIGN, PATH: FOREIGN, REST_API_KEY: "rest-api-key", CONSOLE_TOKEN: "console-token" };
/** Without the gateway's own variables, whose tokens have priority over those of a configuration. */
const { CLOUD_KEY, PATH } = env;
const others = { CLOUD_KEY, PATH };
function tokens(reference: string) {
  return {
    gateway: {
      rest: { auth: { keys: [{ name: "a", key: reference }] } },
      rpc: { auth: { tokens: [{ name: "a", token: reference, permissions: "*" }] } },
    },
    webhooks: { token: [{ value: reference }] },
  };
}
const local = Object.values(networkInterfaces()).flatMap((found) => (found ?? []).map(({ address }) => address));

describe("the address of a configuration is on this machine", () => {
  test.each([
    ["127.0.0.1", "http://127.0.0.1:18789"],
    ["127.3.4.5", "http://127.3.4.5:18789"],
    ["0.0.0.0", "http://127.0.0.1:18789"],
    ["::", "http://127.0.0.1:18789"],
    ["::1", "http://[::1]:18789"],
    ["::ffff:127.0.0.1", "http://[::ffff:127.0.0.1]:18789"],
    ["localhost", "http://localhost:18789"],
    ...local.filter((address) => !address.includes(":")).map((address) => [address, `http://${address}:18789`]),
  ])("%s is called at %s", async (host, url) => {
    const { url: found, key } = await findAddress(
      { config: folderWith({ gateway: { ...tokens("${REST_API_KEY}").gateway, host } }) },
      env,
    );
    expect([found, key]).toEqual([url, "rest-api-key"]);
  });

  test.each([
    ["evil.example", {}],
    ["localhost.evil.example", {}],
    ["localtest.me", {}],
    ["ip6-localhost", {}],
    ["localhost.", {}],
    ["192.0.2.1", {}],
    ["2001:db8::1", {}],
    ["::ffff:192.0.2.1", {}],
    ["::1%eth0", {}],
    ["127.1", {}],
    ["0x7f000001", {}],
    ["2130706433", {}],
    ["127.0.0.1@evil.example", {}],
    ["127.0.0.1/../evil.example", {}],
    ["127.0.0.1#evil.example", {}],
    ["${CLOUD_KEY}.evil.example", {}],
    ["${REST_API_KEY}.evil.example", {}],
    [["evil.example"], {}],
    ["127.0.0.1", { port: "1@evil.example" }],
    ["127.0.0.1", { port: "${CLOUD_KEY}" }],
    ["127.0.0.1", { port: "${REST_API_KEY}" }],
    ["127.0.0.1", { port: 65_536 }],
    ["127.0.0.1", { port: [{}] }],
  ])("%j with %j is refused, without the value of a variable", async (host, more) => {
    for (const [config, name] of [
      [{ gateway: { ...tokens("${CLOUD_KEY}").gateway, host, ...more } }, "gateway.json5"],
      [{ gateway: { ...tokens("${CLOUD_KEY}").gateway, listeners: [{ host, ...more }] } }, "gateway.yaml"],
      [{ gateway: { ...tokens("${CLOUD_KEY}").gateway, listeners: [{ host, ...more, tls: {} }] } }, "gateway.json"],
    ] as const) {
      const failure = await findAddress({ config: folderWith(config, undefined, name) }, env).catch((error) => error);
      expect(failure).toMatchObject({ exitCode: 2, next: "name the gateway and its key: --url URL --key KEY" });
      for (const secret of Object.values(env)) expect(failure.message).not.toContain(secret);
    }
  });

  test("whatever a configuration contains", async () => {
    const text = fc.oneof(
      fc.string({ unit: "binary" }),
      fc.domain(),
      fc.ipV4(),
      fc.ipV6(),
      fc.webUrl(),
      fc.constantFrom("127.0.0.1", "${CLOUD_KEY}", "${REST_API_KEY}", "@evil.example", "localhost"),
    );
    const any = fc.oneof(text, fc.jsonValue(), fc.array(text), fc.integer());
    const listener = fc.record({ host: any, port: any, tls: any }, { requiredKeys: [] });
    const config = fc.record(
      {
        gateway: fc.oneof(
          any,
          fc.record(
            {
              host: any,
              port: any,
              listeners: fc.oneof(any, fc.array(fc.oneof(any, listener))),
              console: fc.oneof(any, fc.record({ token: any })),
              rest: fc.oneof(
                any,
                fc.record({ auth: fc.record({ keys: fc.array(fc.oneof(any, fc.record({ key: any }))) }) }),
              ),
              rpc: fc.oneof(
                any,
                fc.record({ auth: fc.record({ tokens: fc.array(fc.oneof(any, fc.record({ token: any }))) }) }),
              ),
            },
            { requiredKeys: [] },
          ),
        ),
        webhooks: fc.oneof(any, fc.record({ token: any, path: any }, { requiredKeys: [] })),
      },
      { requiredKeys: [] },
    );
    const file = folderWith({});
    await fc.assert(
      fc.asyncProperty(config, async (value) => {
        writeFileSync(file, JSON.stringify(value));
        const address = await findAddress({ config: file }, env).catch((error) => error);
        expect(JSON.stringify(address)).not.toContain(FOREIGN);
        if (address instanceof Error) {
          expect(address).toMatchObject({ exitCode: 2 });
          return;
        }
        const { hostname, username } = new URL(address.url + (address.webhookPath ?? "/"));
        expect(username).toBe("");
        expect(
          /^(localhost|127\.[\d.]+|\[::1\]|\[::ffff:7f.*\])$/.test(hostname) ||
            local.includes(hostname.replace(/[[\]]/g, "")),
        ).toBe(true);
      }),
      {
        numRuns: 500,
        examples: [[{ gateway: { host: { toString: null } } }], [{ gateway: { port: { valueOf: 1, toString: 1 } } }]],
      },
    );
  });
});

describe("the variables of a configuration", () => {
  test("are the gateway's own, and those of gateway.env", async () => {
    const own = await findAddress(
      { config: folderWith(tokens("${CONSOLE_TOKEN}")) },
      { CONSOLE_TOKEN: "of-the-console" },
    );
    expect([own.key, own.rpcToken, own.webhookToken]).toEqual(Array(3).fill("of-the-console"));
    const beside = await findAddress({ config: folderWith(tokens("${CLOUD_KEY}"), "CLOUD_KEY=of-the-folder") }, others);
    expect(beside.key).toBe("of-the-folder");
    const under = await findAddress({ config: folderWith(tokens("${REST_API_KEY}"), "REST_API_KEY=other") }, env);
    expect(under.key).toBe("rest-api-key");
  });

  test.each([
    "${CLOUD_KEY}",
    "x${CLOUD_KEY}",
    "${REST_API_KEY}${CLOUD_KEY}",
    "${PATH}",
    "${CLOUD_KEY",
    "$${${CLOUD_KEY}}",
  ])("%s is not filled in", async (reference) => {
    const address = await findAddress({ config: folderWith(tokens(reference)) }, others);
    expect([address.key, address.rpcToken, address.webhookToken]).toEqual([undefined, undefined, undefined]);
    expect(JSON.stringify(address)).not.toContain(FOREIGN);
  });

  test("do not include a file in another folder that gateway.env is a link to", async () => {
    const config = folderWith(tokens("${CLOUD_KEY}"));
    const other = join(emptyFolder(), "credentials");
    writeFileSync(other, `CLOUD_KEY=${FOREIGN}`);
    symlinkSync(other, join(config, "../gateway.env"));
    expect((await findAddress({ config }, others)).key).toBeUndefined();
  });

  test("are read without waiting if gateway.env is a pipe", async () => {
    const config = folderWith(tokens("${CLOUD_KEY}"));
    spawnSync("mkfifo", [join(config, "../gateway.env")]);
    expect((await findAddress({ config }, others)).key).toBeUndefined();
  });

  test("may be in a file of the same folder that gateway.env is a link to, as Kubernetes mounts it", async () => {
    const config = folderWith(tokens("${CLOUD_KEY}"));
    mkdirSync(join(config, "../..data"));
    writeFileSync(join(config, "../..data/gateway.env"), "CLOUD_KEY=of-the-folder");
    symlinkSync("..data/gateway.env", join(config, "../gateway.env"));
    expect((await findAddress({ config }, others)).key).toBe("of-the-folder");
  });

  test("in gateway.env set neither the address nor a proxy of a command", async () => {
    const lines = ["GATEWAY_URL", "AGENT_GATEWAY_URL", "GATEWAY_CONFIG", "HTTP_PROXY", "http_proxy", "NODE_OPTIONS"];
    const config = folderWith(tokens("${REST_API_KEY}"), lines.map((name) => `${name}=http://192.0.2.1:1`).join("\n"));
    expect(await findAddress({ config }, env)).toMatchObject({
      url: "http://127.0.0.1:18789",
      key: "rest-api-key",
    });
    const moved = folderWith(tokens("${REST_API_KEY}"), "GATEWAY_PORT=4000");
    expect((await findAddress({ config: moved }, env)).url).toBe("http://127.0.0.1:4000");
    const away = folderWith(tokens("${REST_API_KEY}"), "GATEWAY_HOST=evil.example");
    await expect(findAddress({ config: away }, env)).rejects.toThrow("not an address of this machine");
  });
});

describe("an address that is given with a configuration", () => {
  const config = { ...tokens("${CONSOLE_TOKEN}"), gateway: { ...tokens("${CONSOLE_TOKEN}").gateway, port: 4000 } };
  const env = { CLOUD_KEY: FOREIGN };
  const secrets = "CONSOLE_TOKEN=of-the-console";
  const found = async (options: object, cwd?: string) => {
    const before = process.cwd();
    if (cwd) process.chdir(cwd);
    try {
      const { key, rpcToken, webhookToken } = await findAddress(options, env);
      return [key, rpcToken, webhookToken];
    } finally {
      process.chdir(before);
    }
  };
  const NOTHING = [undefined, undefined, undefined];
  const ALL = Array(3).fill("of-the-console");

  test("on another machine gets no token of it, even if both are given", async () => {
    const file = folderWith(config, secrets);
    for (const url of ["http://gateway.example", "http://192.0.2.1", "http://127.0.0.1:4000@evil.example", "nonsense"])
      expect([url, await found({ config: file, url })]).toEqual([url, NOTHING]);
    expect(await found({ config: file, url: "http://127.0.0.1:5000" })).toEqual(ALL);
  });

  test("gets the tokens of the folder's if it is the same one", async () => {
    const folder = join(folderWith(config, secrets), "..");
    for (const url of [
      "http://127.0.0.1:4000",
      "http://localhost:4000/",
      "http://[::1]:4000",
      "https://127.0.0.1:4000",
    ])
      expect([url, await found({ url }, folder)]).toEqual([url, ALL]);
    for (const url of [
      "http://127.0.0.1:4001",
      "http://127.0.0.2:4000",
      "http://127.0.0.1",
      "http://gateway.example:4000",
    ])
      expect([url, await found({ url }, folder)]).toEqual([url, NOTHING]);
  });

  test("is used even if the configuration of the folder is invalid", async () => {
    for (const broken of ["{", '{"gateway":{"host":"evil.example"}}'])
      expect(await found({ url: "http://127.0.0.1:4000" }, join(folderWith(broken), ".."))).toEqual(NOTHING);
  });
});

test("with a path of webhooks that would change the host is not used", async () => {
  for (const path of ["@evil.example/x", "/a b", "hooks", "/hooks/", 7])
    expect((await findAddress({ config: folderWith({ webhooks: { path } }) }, env)).webhookPath).toBeUndefined();
  expect((await findAddress({ config: folderWith({ webhooks: { path: "/in" } }) }, env)).webhookPath).toBe("/in");
});

test("a command in another user's folder sends nothing, and prints the next step", async () => {
  const folder = (config: object) => join(folderWith(config), "..");
  const elsewhere = folder({ gateway: { ...tokens("${CLOUD_KEY}").gateway, host: "evil.example" } });
  expect(await runCli(["send", "main", "Hello"], { cwd: elsewhere, env })).toEqual({
    code: 2,
    out: "",
    err: 'gateway.json5 names the host "evil.example", which is not an address of this machine: nothing is sent there.\nNext: name the gateway and its key: --url URL --key KEY\n',
  });
  const variable = folder(tokens("${CLOUD_KEY}"));
  expect(await runCli(["send", "main", "Hello"], { cwd: variable, env: { CLOUD_KEY: FOREIGN } })).toEqual({
    code: 4,
    out: "",
    err: "gateway.json5 takes its key from the variable CLOUD_KEY. A command takes only the gateway's own variables from the environment, and those in gateway.env next to the file.\nNext: put CLOUD_KEY into gateway.env, or pass --key\n",
  });
});
