import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import type { ConfigFile } from "#generated/config-types.ts";
import { type GatewayProcess, startProcess } from "#test/harness/process.ts";
import { createRest } from "#test/harness/rest.ts";
import { agentWith, key } from "./configs.ts";

async function send({ url }: GatewayProcess, body: object, withKey = key) {
  const { status, error } = await createRest(url, withKey).call("chat.send", { body: { message: "Hi", ...body } });
  return error ? `${status} ${error}` : status;
}

const oneKey = agentWith({});
const other = "another-key-for-rest-clients";
function withKeys(...keys: string[]): NonNullable<ConfigFile["gateway"]> {
  return {
    ...oneKey.gateway,
    rest: { auth: { keys: keys.map((value, n) => ({ name: `key-${n}`, key: value })) } },
  };
}
/** The same with a second agent, and its keys changed. */
const changed: ConfigFile = {
  gateway: { ...withKeys(other), defaultAgent: "main" },
  agents: { ...oneKey.agents, side: { backend: "echo" } },
};

async function expectChanged(gateway: GatewayProcess) {
  expect(await send(gateway, { agent: "side" }, other)).toBe(200);
  expect(await send(gateway, { agent: "main" }, other)).toBe(200);
  expect(await send(gateway, {}, key)).toBe("401 unauthenticated");
}

test("a changed file takes effect automatically: a new agent answers, and a removed key fails", async () => {
  await using gateway = await startProcess({ config: oneKey });
  expect(await send(gateway, { agent: "side" })).toBe("404 agent-not-found");
  gateway.configure(changed);
  const { cause, changed: keys, needRestart } = await gateway.logged("config.reloaded");
  expect(cause).toBe("file");
  expect(keys).toEqual(["gateway.rest.auth.keys", "agents.side"]);
  expect(needRestart).toEqual([]);
  await expectChanged(gateway);
});

test("SIGHUP reads the file again at once, also behind a link", async () => {
  const folder = mkdtempSync(join(tmpdir(), "gateway-link-"));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  mkdirSync(join(folder, "elsewhere"));
  const real = join(folder, "elsewhere/real.json5");
  const link = join(folder, "linked.json5");
  writeFileSync(real, JSON.stringify(oneKey));
  symlinkSync(real, link);

  await using gateway = await startProcess({ args: ["--config", link] });
  writeFileSync(real, JSON.stringify(changed));
  gateway.kill("SIGHUP");
  expect(await gateway.logged("config.reloaded")).toMatchObject({
    cause: "signal",
    changed: ["gateway.rest.auth.keys", "agents.side"],
  });
  await expectChanged(gateway);
  writeFileSync(real, "{");
  gateway.kill("SIGHUP");
  expect(await gateway.logged("config.refused")).toMatchObject({ cause: "signal" });
  await expectChanged(gateway);
});

test("F15: a broken file changes nothing, the error has its place, and the next valid one takes effect", async () => {
  const secret = "the-secret-that-no-line-repeats";
  const mapping = (message: string) => ({ token: secret, mappings: { push: { match: {}, message } } });
  const tokens = [
    { name: "one", token: secret, permissions: "*" },
    { name: "two", token: secret, permissions: "*" },
  ];
  const faults: [string, object | string, RegExp, RegExp][] = [
    ["syntax", `{\n  agents: { main: { backend: "echo" } },\n  gateway: ${secret}\n}`, /^$/, /./],
    ["an unknown key", { ...oneKey, gatewy: {} }, /^gatewy$/, /did you mean `gateway`/],
    [
      "an unset variable",
      { ...oneKey, webhooks: { token: `\${NOT_SET_ANYWHERE}` } },
      /^webhooks\.token$/,
      /NOT_SET_ANYWHERE/,
    ],
    [
      "a bad mapping",
      { ...oneKey, webhooks: mapping("{nobody.name}") },
      /^webhooks\.mappings\.push\.message$/,
      /placeholder/,
    ],
    [
      "the same token twice",
      { ...oneKey, gateway: { ...oneKey.gateway, rpc: { auth: { tokens } } } },
      /^gateway\.rpc\.auth\.tokens\[1\]\.token$/,
      /same token/,
    ],
    ["no agent", { ...oneKey, agents: {} }, /^agents$/, /./],
  ];
  await using gateway = await startProcess({ config: oneKey });
  for (const [n, [what, config, where, message]] of faults.entries()) {
    gateway.configure(config);
    const refused = await gateway.logged("config.refused", n + 1);
    const [problem] = refused.problems as { file: string; line: number; key: string; message: string }[];
    expect(refused.level, what).toBe("error");
    expect(problem?.file, what).toBe("gateway.json5");
    expect(problem?.line, what).toBeGreaterThan(0);
    expect(problem?.key, what).toMatch(where);
    expect(problem?.message, what).toMatch(message);
    expect(await send(gateway, {}), what).toBe(200);
    expect(await send(gateway, { agent: "side" }), what).toBe("404 agent-not-found");
  }
  expect(gateway.records.filter(({ event }) => event === "config.refused")).toHaveLength(faults.length);
  expect(gateway.output).not.toContain(secret);
  gateway.configure(changed);
  await gateway.logged("config.reloaded");
  await expectChanged(gateway);
});

test("running turns of a removed agent finish with the old configuration, queued ones fail as agent-removed", async () => {
  const slow = { backend: "echo", concurrency: 1, echo: { delayMs: 4_000 } } as const;
  const withSlow = {
    ...oneKey,
    gateway: { ...oneKey.gateway, defaultAgent: "main" },
    agents: { ...oneKey.agents, slow },
  };
  await using gateway = await startProcess({ config: withSlow, env: { LOG_LEVEL: "debug" } });
  const rest = createRest(gateway.url, key);
  const sendSlow = (message: string) => rest.call("chat.send", { body: { message, agent: "slow", session_id: "s" } });
  const running = sendSlow("runs");
  await gateway.logged("turn.started");
  const queued = sendSlow("waits");
  const stream = await rest.stream("chat.send", { body: { message: "waits too", agent: "slow" } });
  gateway.configure(oneKey);
  await gateway.logged("config.reloaded");

  const failed = await queued;
  expect(failed.problem).toMatchObject({ type: "/docs/errors.html#agent-removed" });
  const turn = await rest.call("turns.get", { path: { turn_id: String(failed.problem.turn_id) } });
  expect(turn.json).toMatchObject({ status: "failed", error: { name: "agent-removed" } });
  expect((await stream.all()).at(-1)).toMatchObject({
    event: "turn.failed",
    data: { error: { name: "agent-removed" } },
  });
  expect(await running).toMatchObject({ status: 200, json: { reply: "runs" } });
  expect(await send(gateway, { agent: "slow" })).toBe("404 agent-not-found");
});
