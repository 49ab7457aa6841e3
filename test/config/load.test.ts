import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { hashOf } from "#config/config.ts";
import { loadConfig } from "#config/load.ts";
import { built, folder, load, withSections } from "./configs.ts";

function described(description: string) {
  return JSON.stringify({ agents: { main: { backend: "echo", description } } });
}

describe("the configuration is found", () => {
  test("as the named file, else $GATEWAY_CONFIG, else gateway.json5, else not at all", async () => {
    const here = folder();
    const write = (name: string) => {
      writeFileSync(join(here, name), described(name));
      return join(here, name);
    };
    const found = async (options: { file?: string; env?: NodeJS.ProcessEnv }) =>
      (await loadConfig({ env: {}, built, folder: here, ...options })).config.agents.main?.description;

    expect(await found({})).toBe("Repeats each message.");
    const usual = write("gateway.json5");
    expect(await found({})).toBe("gateway.json5");
    const env = { GATEWAY_CONFIG: write("other.json5") };
    expect(await found({ env })).toBe("other.json5");
    expect(await found({ env: { GATEWAY_CONFIG: "" } })).toBe("gateway.json5");
    expect(await found({ env, file: usual })).toBe("gateway.json5");
  });

  test("and a named file that does not exist is refused, not skipped", async () => {
    await expect(loadConfig({ env: { GATEWAY_CONFIG: "nowhere.json5" }, built })).rejects.toThrow(
      "nowhere.json5: the file cannot be read: it does not exist. Create it, or name another one.",
    );
  });
});

describe("host and port", () => {
  const text = withSections({ gateway: { host: "127.0.0.2", port: 1000 } });
  const address = async (options: object) => {
    const { host, port } = (await load(text, options)).config.gateway.listeners[0] ?? {};
    return `${host}:${port}`;
  };

  test("of the command line override the environment, which overrides the file", async () => {
    const env = { GATEWAY_HOST: "127.0.0.3", GATEWAY_PORT: "2000" };
    expect(await address({})).toBe("127.0.0.2:1000");
    expect(await address({ env: { GATEWAY_HOST: "", GATEWAY_PORT: "" } })).toBe("127.0.0.2:1000");
    expect(await address({ env })).toBe("127.0.0.3:2000");
    expect(await address({ env, host: "127.0.0.4" })).toBe("127.0.0.4:2000");
    expect(await address({ env, host: "127.0.0.4", port: 0 })).toBe("127.0.0.4:0");
  });

  test("apply to the first of several listeners", async () => {
    const { config } = await load(
      withSections({ gateway: { listeners: [{ port: 1 }, { port: 2, surfaces: ["rpc"] }] } }),
      {
        port: 3,
      },
    );
    expect(config.gateway.listeners.map(({ port, surfaces }) => [port, surfaces.length])).toEqual([
      [3, 6],
      [2, 1],
    ]);
  });

  test.each(["http", "70000", "-1", "1.5"])("%s is not a port", async (port) => {
    const message = "GATEWAY_PORT is not a port: give a whole number from 0 to 65535.";
    await expect(load(text, { env: { GATEWAY_PORT: port } })).rejects.toThrow(message);
    await expect(load(text, { port: Number(port) })).rejects.toThrow(message.replace("GATEWAY_PORT", "--port"));
  });
});

describe("without a configuration", () => {
  const nowhere = () => ({ env: {}, built, folder: folder() });

  test("an echo agent answers on loopback, from memory, on every surface", async () => {
    const { config, file, files, warnings } = await loadConfig(nowhere());
    expect(config.gateway.listeners).toMatchObject([{ host: "127.0.0.1", port: 18789, tls: undefined }]);
    expect(Object.keys(config.agents)).toEqual(["main"]);
    expect(config.store).toEqual({ type: "memory" });
    const { rest, rpc, console } = config.gateway;
    expect([rest, rpc, console, config.webhooks].map(({ enabled }) => enabled)).toEqual([true, true, true, true]);
    expect({ file, files, warnings }).toEqual({ file: null, files: {}, warnings: [] });
  });

  test("the secrets are new each time, and give access to their surface", async () => {
    const { config, tryOut } = await loadConfig(nowhere());
    const again = await loadConfig(nowhere());
    const secrets = [...Object.values(tryOut ?? {}), ...Object.values(again.tryOut ?? {})];
    expect(new Set(secrets).size).toBe(8);
    expect(config.gateway.rest.auth.keys[0]?.hash).toBe(hashOf(tryOut?.REST_API_KEY ?? ""));
    expect(config.gateway.rpc.auth.tokens).toEqual([
      { name: "try-out", hash: hashOf(tryOut?.RPC_TOKEN ?? ""), permissions: ["*"] },
    ]);
    expect(config.webhooks.token[0]?.hash).toBe(hashOf(tryOut?.WEBHOOK_TOKEN ?? ""));
    expect(config.gateway.console.token).toBe(hashOf(tryOut?.CONSOLE_TOKEN ?? ""));
  });

  test("secrets of the environment replace the random ones", async () => {
    const env = {
      REST_API_KEY: "my-own-rest-key-1",
      RPC_TOKEN: "my-own-rpc-token-1",
      WEBHOOK_TOKEN: "",
      CONSOLE_TOKEN: "short",
    };
    const { tryOut, warnings } = await loadConfig({ ...nowhere(), env });
    expect(tryOut).toMatchObject({ ...env, WEBHOOK_TOKEN: expect.any(String) });
    expect(tryOut?.WEBHOOK_TOKEN).toHaveLength(32);
    expect(warnings).toEqual([expect.stringMatching(/^CONSOLE_TOKEN is shorter than 16 characters/)]);
  });

  test("a weak secret of the environment is refused if other machines can connect", async () => {
    const env = { RPC_TOKEN: "short", GATEWAY_HOST: "0.0.0.0" };
    await expect(loadConfig({ ...nowhere(), env })).rejects.toThrow(/^RPC_TOKEN is shorter/);
    const same = { RPC_TOKEN: "easy", CONSOLE_TOKEN: "easy", NODE_ENV: "production" };
    const words = /(RPC|CONSOLE)_TOKEN is the same as (RPC|CONSOLE)_TOKEN: /;
    await expect(loadConfig({ ...nowhere(), env: same })).rejects.toThrow(words);
  });
});

test("the loaded configuration is frozen completely", async () => {
  const { config } = await load(
    withSections({ webhooks: { mappings: { push: { match: { "body.a": 1 }, message: "x" } } } }),
  );
  const loose: string[] = [];
  const visit = (value: unknown, at: string) => {
    if (typeof value !== "object" || value === null) return;
    if (!Object.isFrozen(value)) loose.push(at);
    for (const [key, inner] of Object.entries(value)) visit(inner, `${at}.${key}`);
  };
  visit(config, "");
  expect(loose).toEqual([]);
});

test("paths are relative to the file", async () => {
  const here = folder();
  mkdirSync(join(here, "sub"));
  mkdirSync(join(here, "skills"));
  const file = join(here, "sub", "gateway.json5");
  writeFileSync(
    file,
    withSections({
      skills: { dirs: ["../skills", { path: "/abs", optional: true }] },
      store: { type: "sqlite", path: "a.db" },
    }),
  );
  const { config } = await loadConfig({ file, env: {}, built: { ...built, stores: ["sqlite"] } });
  expect(config.skills.dirs).toEqual([
    { path: join(here, "skills"), optional: false },
    { path: "/abs", optional: true },
  ]);
  expect(config.store).toEqual({ type: "sqlite", path: join(here, "sub", "a.db") });
});

test("agents and mappings have the order of the file", async () => {
  const agent = { backend: "echo" };
  const mapping = { match: {}, message: "x" };
  const { config } = await load(
    withSections({
      gateway: { defaultAgent: "z" },
      agents: { z: agent, a: agent, m: agent },
      webhooks: { mappings: { second: mapping, first: mapping } },
    }),
  );
  expect(Object.keys(config.agents)).toEqual(["z", "a", "m"]);
  expect(Object.keys(config.webhooks.mappings)).toEqual(["second", "first"]);
});

test("durations are milliseconds, sizes bytes, and off and 0 are undefined", async () => {
  const { config } = await load(
    withSections({
      agents: {
        main: { backend: "echo", deadline: "90s", heartbeat: { every: "500ms" } },
        off: { backend: "echo", heartbeat: { every: "off" } },
      },
      gateway: { defaultAgent: "main", rpc: { rateLimit: { maxRequests: 5 } } },
      webhooks: { rateLimit: { maxRequests: 0 } },
      sessions: { retention: "2h", webhookRetention: "3m" },
      limits: { storeBytes: "2 GiB", restBody: 1000, rpcBody: "5B" },
    }),
  );
  expect(config.agents.main).toMatchObject({ deadline: 90_000, heartbeat: { every: 500 } });
  expect(config.agents.off?.heartbeat.every).toBeUndefined();
  expect(config.gateway.rpc.rateLimit).toEqual({ maxRequests: 5, windowMs: 60_000 });
  expect(config.gateway.rest.rateLimit).toBeUndefined();
  expect(config.webhooks.rateLimit).toBeUndefined();
  expect(config.sessions).toMatchObject({ retention: 7_200_000, webhookRetention: 180_000 });
  expect(config.limits).toMatchObject({ storeBytes: 2 * 2 ** 30, restBody: 1000, rpcBody: 5 });
});
