import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { WebSocket } from "ws";
import { type Push, RpcClient } from "#generated/clients/typescript/src/rpc.ts";
import type { ConfigFile } from "#generated/config-types.ts";
import { type GatewayProcess, startProcess } from "#test/harness/process.ts";
import { createRpc } from "#test/harness/rpc.ts";
import { skillText } from "#test/harness/skills.ts";
import { agentWith, opsToken } from "./configs.ts";

// system.reload and agent.reload read the file that the process was started with.

const base = agentWith({});
function withMain(main: object, more: object = {}): ConfigFile {
  return {
    ...base,
    agents: { main: { backend: "echo", ...main }, ...more },
    gateway: { ...base.gateway, defaultAgent: "main" },
  };
}
function rpcOf({ url }: GatewayProcess) {
  return createRpc(url, opsToken);
}

test("system.reload reads the file, and returns the changed keys and those that need a restart", async () => {
  await using gateway = await startProcess({ config: withMain({}) });
  const rpc = rpcOf(gateway);
  const unchanged = { reloaded: true, changed: [], needsRestart: [], problems: [] };
  expect((await rpc.call("system.reload")).result).toEqual(unchanged);
  const next = withMain({ description: "New." }, { side: { backend: "echo" } });
  gateway.configure({ ...next, store: { type: "memory" }, webhooks: { path: "/in" } });
  const { result } = await rpc.call("system.reload");
  expect(result).toEqual({
    reloaded: true,
    changed: ["agents.main.description", "agents.side"],
    needsRestart: ["webhooks.path"],
    problems: [],
  });
  // It has taken effect when the call is answered.
  expect((await rpc.call("agent.status", { agentName: "main" })).result.description).toBe("New.");
  expect((await rpc.call("agent.list")).result.agents.map(({ agentName }) => agentName)).toEqual(["main", "side"]);
  await gateway.until(() => gateway.records.find(({ event, cause }) => event === "config.reloaded" && cause === "rpc"));
});

test("an invalid file changes nothing; the answer has the file, the line and the key, and no folder", async () => {
  await using gateway = await startProcess({ config: withMain({ description: "Old." }) });
  const rpc = rpcOf(gateway);
  const text = JSON.stringify(withMain({ description: "New.", descripton: "typo" }), null, 2);
  gateway.configure(text);
  const line = text.split("\n").findIndex((one) => one.includes("descripton")) + 1;
  const problem = { file: "gateway.json5", line, column: 7, key: "agents.main.descripton" };
  for (const { result } of [await rpc.call("system.reload"), await rpc.call("agent.reload", { agentName: "main" })]) {
    expect(result).toMatchObject({ reloaded: false, changed: [], problems: [problem] });
    expect(result.problems[0]?.message).toContain("description");
    expect(JSON.stringify(result)).not.toContain(gateway.folder);
  }
  expect((await rpc.call("agent.status", { agentName: "main" })).result.description).toBe("Old.");
  await gateway.until(() => gateway.records.find(({ event, cause }) => event === "config.refused" && cause === "rpc"));
});

test("agent.reload and system.reload read the skills again, and report changed skills and folders without a skill", async () => {
  await using gateway = await startProcess({
    config: withMain({ skills: ["*"] }, { side: { backend: "echo", skills: [] } }),
  });
  const rpc = rpcOf(gateway);
  const reload = async (agentName: string) => (await rpc.call("agent.reload", { agentName })).result;
  const write = (name: string, text: string) => {
    mkdirSync(join(gateway.folder, "skills", name), { recursive: true });
    writeFileSync(join(gateway.folder, "skills", name, "SKILL.md"), text);
  };
  write("tell", skillText("tell", "Tells."));
  write("draft", "no front matter");
  // The folder did not exist at the start.
  const first = await reload("main");
  expect(first.changed).toEqual(["skills"]);
  expect(first.skills.skipped).toMatchObject([{ folder: "draft" }]);
  expect(first.skills.loaded).toEqual(["tell"]);
  write("tell", skillText("tell", "Tells more."));
  expect((await reload("main")).changed).toEqual(["skills"]);
  expect((await reload("main")).changed).toEqual([]);
  write("tell", skillText("tell", "Tells all."));
  expect((await reload("side")).changed).toEqual([]);
  write("ask", skillText("ask", "Asks."));
  expect((await rpc.call("system.reload")).result.changed).toEqual(["skills"]);
  expect((await rpc.call("agent.status", { agentName: "main" })).result.skills).toEqual(["ask", "tell"]);
});

test("SIGHUP and a changed file also load added, changed and removed skills, and report them", async () => {
  const config = withMain({ skills: ["*"] });
  await using gateway = await startProcess({ config });
  const write = (name: string, description: string) => {
    mkdirSync(join(gateway.folder, "skills", name), { recursive: true });
    writeFileSync(join(gateway.folder, "skills", name, "SKILL.md"), skillText(name, description));
  };
  const skills = async () => (await rpcOf(gateway).call("agent.status", { agentName: "main" })).result.skills;
  let lines = 0;
  const reloaded = async () => {
    const { cause, changed } = await gateway.logged("config.reloaded", ++lines);
    return [cause, changed];
  };
  const hangUp = () => {
    gateway.kill("SIGHUP");
    return reloaded();
  };
  write("tell", "Tells.");
  expect(await hangUp()).toEqual(["signal", ["skills"]]);
  expect(await skills()).toEqual(["tell"]);
  write("tell", "Tells more.");
  expect(await hangUp()).toEqual(["signal", ["skills"]]);
  expect(await hangUp()).toEqual(["signal", []]);
  rmSync(join(gateway.folder, "skills/tell"), { recursive: true });
  expect(await hangUp()).toEqual(["signal", ["skills"]]);
  expect(await skills()).toEqual([]);
  write("ask", "Asks.");
  gateway.configure(withMain({ skills: ["*"], description: "New." }));
  expect(await reloaded()).toEqual(["file", ["agents.main.description", "skills"]]);
  expect(await skills()).toEqual(["ask"]);
  write("ask", "Asks again.");
  await rpcOf(gateway).call("system.reload");
  expect(await reloaded()).toEqual(["rpc", ["skills"]]);
});

test("changes are pushed on the gateway's stream, however they were read", async () => {
  await using gateway = await startProcess({ config: withMain({}) });
  const rpc = rpcOf(gateway);
  const client = new RpcClient({ url: gateway.url, rpcToken: opsToken, WebSocket }).connect();
  await client.subscribe({ gateway: null });
  const seen: Push[] = [];
  const reading = (async () => {
    for await (const push of client.pushes()) {
      if (push.method !== "health.changed") seen.push(push);
      if (seen.length === 3) return;
    }
  })();
  gateway.configure(withMain({ description: "One." }));
  await rpc.call("agent.reload", { agentName: "main" });
  gateway.configure(withMain({ description: "Two." }));
  await rpc.call("system.reload");
  await rpc.call("system.reload");
  gateway.configure(withMain({ description: "Three." }));
  gateway.kill("SIGHUP");
  await reading;
  await client.close();
  const changed = ["agents.main.description"];
  expect(seen.map(({ method, params }) => [method, params])).toMatchObject([
    ["agent.reloaded", { agentName: "main", changed }],
    ["system.reloaded", { changed, needsRestart: [] }],
    ["system.reloaded", { changed, needsRestart: [] }],
  ]);
});

test("a missing folder of skills refuses a reload, and its skills remain; an optional one may be missing", async () => {
  const folder = mkdtempSync(join(tmpdir(), "gateway-skills-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  mkdirSync(join(folder, "greet"));
  writeFileSync(join(folder, "greet", "SKILL.md"), skillText("greet", "Greets."));
  await using gateway = await startProcess({ config: { ...withMain({}), skills: { dirs: [folder] } } });
  const rpc = rpcOf(gateway);
  rmSync(folder, { recursive: true });
  const { result } = await rpc.call("system.reload");
  expect(result).toMatchObject({ reloaded: false, problems: [{ key: "skills.dirs[0]" }] });
  await gateway.until(() => gateway.records.find(({ event, cause }) => event === "config.refused" && cause === "rpc"));
  const skillsOf = async () => (await rpc.call("agent.status", { agentName: "main" })).result.skills;
  expect(await skillsOf()).toEqual(["greet"]);
  gateway.configure({ ...withMain({}), skills: { dirs: [{ path: folder, optional: true }] } });
  expect((await rpc.call("system.reload")).result).toMatchObject({ reloaded: true, problems: [] });
  expect(await skillsOf()).toEqual([]);
});
