// biome-ignore-all lint/suspicious/noTemplateCurlyInString: references in a configuration look like that.
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import { loadConfig } from "#config/load.ts";
import { watchConfig } from "#config/watch.ts";
import { BUILT as built } from "#gateway/gateway.ts";
import { folder } from "./configs.ts";

const KEY = "a-key-that-nobody-may-see";
const FILE = `{
  gateway: { rest: { auth: { keys: [{ name: "ci", key: "\${REST_API_KEY}" }] } } },
  webhooks: {
    token: "a-token-that-nobody-may-see",
    mappings: { push: { match: { "body.ref": "main", "body.token": "seen-nowhere" }, message: "basic facts" } },
  },
  agents: {
    main: { backend: "http", http: { url: "https://user:hunter2@example.com/", headers: { "X-Team": "seen-nowhere" } }, description: "\${TEAM}'s" },
    "main.b": { backend: "command", command: { run: ["cat", "--api-key", "seen-nowhere"], env: { HOME: "seen-nowhere" } }, instructions: "\${REST_API_KEY}" },
  },
}`;
const WHOLE = FILE.replace("gateway: {", 'gateway: { defaultAgent: "main",');
const env = { REST_API_KEY: KEY, TEAM: "Ada" };

function written(text = WHOLE, name = "gateway.json5") {
  const file = join(folder(), name);
  writeFileSync(file, text);
  return file;
}
async function valuesOf(options: Partial<Parameters<typeof loadConfig>[0]> = {}) {
  const { values } = await loadConfig({ file: written(), env, built, ...options });
  return { values, at: (path: string) => values.find((value) => value.path === path) };
}
const nowhere = { line: null, column: null, variable: null };

describe("the effective values", () => {
  test("have the value of the file, its place, and the defaults", async () => {
    const { at } = await valuesOf();
    const name = { path: "gateway.rest.auth.keys.0.name", value: "ci", origin: "file", line: 2, variable: null };
    expect(at("gateway.rest.auth.keys.0.name")).toMatchObject(name);
    expect(at("gateway.port")).toEqual({ path: "gateway.port", value: 18789, origin: "default", ...nowhere });
    expect(at("gateway.trustedProxies")).toMatchObject({ value: [], origin: "default" });
    expect(at("gateway.rest.enabled")).toMatchObject({ value: true, origin: "default" });
    expect(at("webhooks.mappings.push.agent")).toMatchObject({ value: "main", origin: "default" });
    expect(at("webhooks.mappings.push.message")).toMatchObject({ value: "basic facts" });
    expect(at("webhooks.mappings.push.match.body.ref")).toMatchObject({ value: "main", line: 5 });
    expect(at("agents.main.description")).toMatchObject({ value: "Ada's", origin: "environment", variable: "TEAM" });
  });

  test("never show a secret", async () => {
    const { values, at } = await valuesOf();
    const told = JSON.stringify(values);
    for (const secret of [KEY, "a-token-that-nobody-may-see", "hunter2", "seen-nowhere", "sha256"])
      expect(told).not.toContain(secret);
    const key = { value: "[hidden]", origin: "environment", line: 2, variable: "REST_API_KEY" };
    expect(at("gateway.rest.auth.keys.0.key")).toMatchObject(key);
    expect(at("webhooks.token")).toMatchObject({ value: "[hidden]", origin: "file", line: 4 });
  });

  test("name an option and a variable that override the file", async () => {
    const { at } = await valuesOf({ port: 4, env: { ...env, GATEWAY_PORT: "3", GATEWAY_HOST: "127.0.0.2" } });
    expect(at("gateway.port")).toEqual({ path: "gateway.port", value: 4, origin: "flag", ...nowhere });
    const host = { value: "127.0.0.2", origin: "environment", ...nowhere, variable: "GATEWAY_HOST" };
    expect(at("gateway.host")).toMatchObject(host);
  });

  test("have their place in YAML, too", async () => {
    const { at } = await valuesOf({ file: written("agents:\n  main:\n    backend: echo\n", "gateway.yaml") });
    expect(at("agents.main.backend")).toMatchObject({ origin: "file", line: 3, column: 14 });
  });

  test("of a try-out hide its secrets, and name the variables that replace them", async () => {
    const { at } = await valuesOf({ file: undefined, folder: folder(), env: { RPC_TOKEN: "x".repeat(20) } });
    expect(at("gateway.console.token")).toMatchObject({ value: "[hidden]", origin: "try-out" });
    const token = { value: "[hidden]", origin: "environment", variable: "RPC_TOKEN" };
    expect(at("gateway.rpc.auth.tokens.0.token")).toMatchObject(token);
  });
});

describe("after a reload", () => {
  const watched = async () => {
    const file = written();
    const load = () => loadConfig({ file, env, built });
    const stop = new AbortController();
    onTestFinished(() => stop.abort());
    const tell = () => {};
    const watch = watchConfig({
      running: await load(),
      load,
      onChange: tell,
      onInvalid: tell,
      signal: stop.signal,
      pollMs: 60_000,
    });
    const at = (path: string) => watch.state.values.find((value) => value.path === path);
    return { file, watch, at };
  };

  test("the values are the new ones, except for those that need a restart", async () => {
    const { file, watch, at } = await watched();
    expect(watch.state.lastReload).toBeUndefined();
    writeFileSync(file, WHOLE.replace("gateway: {", "\ngateway: { port: 7,").replace('"basic facts"', '"news"'));
    await watch.reload("signal");
    expect(at("gateway.port")).toMatchObject({ value: 18789, origin: "default" });
    expect(at("webhooks.mappings.push.message")).toMatchObject({ value: "news", line: 6 });
    const reload = { cause: "signal", reloaded: true, needsRestart: ["gateway.port"], problems: [] };
    expect(watch.state.lastReload).toMatchObject(reload);
  });

  test("an address that needs a restart is shown completely, in either notation", async () => {
    const { file, watch, at } = await watched();
    writeFileSync(file, WHOLE.replace("gateway: {", "gateway: { listeners: [{ port: 7 }],"));
    await watch.reload("signal");
    expect(at("gateway.port")).toMatchObject({ value: 18789 });
    expect(at("gateway.listeners.0.port")).toBeUndefined();
  });

  test("of one agent, only its values change", async () => {
    const { file, watch, at } = await watched();
    const next = WHOLE.replace("'s\"", ' team"').replace('"cat"', '"tac"').replace('"basic facts"', '"news"');
    writeFileSync(file, next);
    await watch.reload("rpc", "main");
    expect(at("agents.main.description")).toMatchObject({ value: "Ada team" });
    expect(at("agents.main.b.command.run.0")).toMatchObject({ value: "cat" });
    expect(at("webhooks.mappings.push.message")).toMatchObject({ value: "basic facts" });
  });

  test("that is refused, the values do not change, and the problems are shown", async () => {
    const { file, watch } = await watched();
    const { values, loadedAt } = watch.state;
    writeFileSync(file, WHOLE.replace("gateway: {", "gateway: { prt: 7,"));
    await watch.reload("rpc");
    expect(watch.state).toMatchObject({ values, loadedAt });
    const problem = { file, line: 2, key: "gateway.prt" };
    expect(watch.state.lastReload).toMatchObject({ cause: "rpc", reloaded: false, problems: [problem] });
  });
});

test("a secret is hidden in every possible place", async () => {
  const L = "LEAK-aaaaaaaaaaaaaaaa";
  const text = JSON.stringify({
    gateway: { defaultAgent: "main", rest: { auth: { keys: [{ name: "a", key: `sha256:${"ab".repeat(32)}` }] } } },
    webhooks: {
      token: [`${L}1`, { name: "old", value: `${L}2`, since: "2026-01-01" }],
      mappings: { p: { match: {}, message: "x", verify: { type: "slack", secret: [`${L}3`, `${L}4`] } } },
    },
    channels: {
      s: { type: "slack", url: `https://hooks.slack.com/services/${L}` },
      w: { type: "webhook", url: `https://e.com/?k=${L}`, secret: `${L}5` },
    },
    providers: { o: { type: "openai-compatible", apiKey: L, baseUrl: "https://e.com/v1", headers: { "x-a": L } } },
    tools: {
      t: { type: "stdio", run: ["cat", `--token=${L}`, `API_KEY=${L}`, "--secret", L], env: { A: L } },
      h: { type: "http", url: `https://u:${L}@e.com`, headers: { A: L } },
    },
    store: { type: "postgres", url: [`postgres://u:${L}@h1/db`, `postgres://h2/db?password=${L}`] },
    agents: {
      main: {
        backend: "model",
        model: "m",
        models: { m: { provider: "o", model: "z", options: { apiKey: L, more: { token: [L] } } } },
        instructions: `Authorization: Bearer ${L}`,
      },
      h: { backend: "http", http: { url: "https://e.com", secret: `${L}6` } },
    },
  });
  const { values } = await valuesOf({ file: written(text) });
  expect(values.filter(({ value }) => /LEAK|abab/.test(String(value)))).toEqual([]);
  expect(values.filter(({ value }) => value === "[hidden]").length).toBeGreaterThan(18);
});
