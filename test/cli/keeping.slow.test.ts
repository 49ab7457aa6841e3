import { spawnSync } from "node:child_process";
import { chmodSync, existsSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { root } from "#test/harness/process.ts";
import { emptyFolder, runCli, startCli } from "./cli.ts";
import { startCommands } from "./gateway.ts";

const { run, json, secrets } = await startCommands();

test("the exit code of health says if a gateway accepts work, without a token", async () => {
  const none = { env: { REST_API_KEY: "" } };
  expect(await run(["health"], none)).toEqual({ code: 0, out: "It is ready.\n", err: "" });
  expect((await run(["health", "--live"], none)).out).toMatch(/^The gateway is running, version \d/);
  expect((await run(["health", "--url", "http://127.0.0.1:2"])).code).toBe(3);
});

test("doctor is one screen: each check with its state and the next step", async () => {
  const { code, out } = await run(["doctor", "--turn"]);
  expect(code).toBe(0);
  expect(out.split("\n").length).toBeLessThan(24);
  for (const line of [
    /^✓ node /m,
    /^! config +There is no gateway\.json5 here\n +→ agent-gateway init/m,
    /^✓ gateway /m,
    /^✓ rest key /m,
    /^! store +memory forgets/m,
    /^✓ turn /m,
  ])
    expect(out).toMatch(line);
  expect(out).not.toContain(secrets.CONSOLE_TOKEN);
});

test("doctor fails if the gateway does not run, or does not accept a token", async () => {
  const gone = await run(["doctor", "--url", "http://127.0.0.1:2"]);
  expect([gone.code, gone.out]).toEqual([
    1,
    expect.stringMatching(/✕ gateway .*ECONNREFUSED.*\n +→ agent-gateway serve/),
  ]);
  const wrong = await run(["doctor", "--rpc-token", "a-wrong-token-of-some-length", "--json"]);
  const { checks } = JSON.parse(wrong.out);
  expect([wrong.code, checks]).toEqual([
    1,
    expect.arrayContaining([expect.objectContaining({ id: "rpc token", state: "failed" })]),
  ]);
});

test("agents are listed, shown, reloaded, paused and resumed", async () => {
  expect((await run(["agents", "list", "-q"])).out).toBe("main\nslow\nbad\n");
  expect((await run(["agents", "show", "main"])).out).toMatch(/^agent +main\nstate +idle\n/);
  expect((await run(["agents", "reload", "main"])).out).toBe("main was reloaded: nothing changed.\n");
  expect((await run(["agents", "pause", "slow"])).out).toMatch(
    /^slow has been paused since .*\nNext: agent-gateway agents resume slow\n$/,
  );
  expect((await run(["agents", "list"])).out).toMatch(/^slow +paused/m);
  expect((await run(["agents", "resume", "slow"])).out).toBe("slow goes on.\n");
  expect((await run(["agents", "show", "nobody"])).code).toBe(5);
});

test("schedules are listed, run, paused and resumed", async () => {
  expect((await run(["schedules"])).out).toMatch(
    /^SCHEDULE +WHEN +NEXT +LAST +RESULT\nbrief +0 0 1 1 \* Europe\/Berlin +\d{4}-[\d-]+ [\d:]+ +– +not run yet\nbroken /,
  );
  expect((await run(["schedules", "list", "-q"])).out).toBe("brief\nbroken\n");
  const { out } = await run(["schedules", "run", "brief"]);
  const [, turn = ""] = /^brief runs now: (turn_\w+)\n/.exec(out) ?? [];
  expect(out).toBe(`brief runs now: ${turn}\nNext: agent-gateway turns show ${turn} --follow\n`);
  const waited = await run(["schedules", "run", "brief", "--wait"]);
  expect([waited.code, waited.out]).toEqual([0, expect.stringContaining("Write the brief.")]);
  expect((await run(["schedules", "run", "broken", "--wait"])).code).toBe(7);
  expect((await run(["schedules", "pause", "brief"])).out).toMatch(
    /^brief has been paused since .*\. It starts no turns at its planned times\.\nNext: agent-gateway schedules resume brief\n$/,
  );
  expect((await run(["schedules"])).out).toMatch(/^brief .* paused +\S+ +completed$/m);
  expect((await run(["schedules", "resume", "brief"])).out).toMatch(/^brief is active\. It runs next at \d{4}-/);
  expect(await run(["schedules", "run", "breif"])).toMatchObject({
    code: 5,
    err: expect.stringMatching(/Did you mean `brief`\? .*\nNext: agent-gateway schedules\n$/s),
  });
});

test("keys are created, shown once, listed, rotated and revoked", async () => {
  const made = await run(["keys", "create", "dashboard", "--scope", "admin", "--expires", "30d"]);
  expect([made.code, made.out, made.err]).toEqual([
    0,
    expect.stringMatching(/^gw_\S+\n$/),
    expect.stringContaining("It is shown only once"),
  ]);
  expect((await run(["turns", "list", "--key", made.out.trim()])).code).toBe(0);
  const { keys } = await json("keys", "list");
  const { key_id } = keys.find(({ name }: { name: string }) => name === "dashboard");
  expect((await run(["keys", "rotate", key_id, "-q"])).out).toMatch(/^gw_\S+\n$/);
  expect(await run(["keys", "revoke", key_id])).toMatchObject({ code: 2, err: expect.stringContaining("--yes") });
  expect((await run(["keys", "revoke", key_id, "--yes"])).out).toBe(`${key_id} is revoked.\n`);
  expect((await run(["turns", "list", "--key", made.out.trim()])).code).toBe(4);
  expect(await run(["keys", "create", "x", "--expires", "soon"])).toMatchObject({
    code: 2,
    err: expect.stringContaining("Use 30d"),
  });
});

test("a key is made for some agents and with its own rate limit, and listed with them", async () => {
  const made = await json("keys", "create", "widget", "--agents", "main", "--rate", "5/1m");
  expect(made).toMatchObject({ agents: ["main"], rate_limit: { limit: 5, window_ms: 60_000 } });
  const { out } = await run(["keys", "list"]);
  expect(out).toMatch(/KEY +NAME +SCOPES +AGENTS +RATE /);
  expect(out).toMatch(/widget +chat +main +5\/60s /);
  for (const [option, value, words] of [
    ["--agents", "main,", "Write a,b."],
    ["--agents", "", "Write a,b."],
    ["--rate", "5", "Write 100/60s"],
    ["--rate", "5/60", "Write 100/60s"],
    ["--rate", "-5/60s", "Write 100/60s"],
  ] as const)
    expect(await run(["keys", "create", "x", option, value])).toMatchObject({
      code: 2,
      err: expect.stringContaining(words),
    });
  const unknown = await run(["keys", "create", "x", "--agents", "mian"]);
  expect(unknown.err).toContain("agents names an agent that is not configured. Did you mean `main`?");
  const admin = await run(["keys", "create", "x", "--agents", "main", "--scope", "admin"]);
  expect(admin.err).toContain("a key with the scope admin reaches every agent");
});

test("skills commands explain how to start without skills, and list the known ones", async () => {
  expect((await run(["skills", "list"])).err).toContain("No skills.");
  expect(await run(["skills", "trigger", "summarise"])).toMatchObject({
    code: 5,
    err: expect.stringContaining("Next: agent-gateway skills list"),
  });
});

test("usage is a table by agent, with the total at the end", async () => {
  await run(["send", "main", "count me"]);
  const { out } = await run(["usage", "--from", "1h"]);
  expect(out).toMatch(/^AGENT +TURNS +FAILED/);
  expect(out).toMatch(/^in all +\d+ /m);
  expect((await json("usage", "--group-by", "model")).groups).toBeInstanceOf(Array);
});

test("config show prints the origin of each value, and hides secrets", async () => {
  const { out } = await run(["config", "show"]);
  expect(out).toMatch(/^gateway\.console\.token +"\[hidden\]" +CONSOLE_TOKEN$/m);
  expect(out).toMatch(/^agents\.main\.backend +"echo" +gateway\.json5:\d+$/m);
  const all = await json("config", "show", "--all");
  expect(all.values.length).toBeGreaterThan(out.split("\n").length);
});

test("diagnostics export writes a bundle without secrets, and overwrites nothing", async () => {
  const cwd = emptyFolder();
  await run(["send", "bad", "a message that nobody else may read"]);
  expect(await run(["diagnostics", "export"], { cwd })).toMatchObject({
    code: 0,
    err: expect.stringContaining("gateway-diagnostics.json is written"),
  });
  expect(statSync(join(cwd, "gateway-diagnostics.json")).mode & 0o777).toBe(0o600);
  const text = readFileSync(join(cwd, "gateway-diagnostics.json"), "utf8");
  for (const secret of Object.values(secrets)) expect(text).not.toContain(secret);
  expect(text).not.toContain("nobody else may read");
  const bundle = JSON.parse(text);
  expect(Object.keys(bundle)).toEqual(
    expect.arrayContaining(["about", "health", "configuration", "failedTurns", "metrics"]),
  );
  expect(bundle.failedTurns.turns.length).toBeGreaterThan(0);
  expect(await run(["diagnostics", "export"], { cwd })).toMatchObject({
    code: 1,
    err: expect.stringContaining("already exists"),
  });
});

test("a file in a folder that does not exist is refused, with the command that creates the folder", async () => {
  const cwd = emptyFolder();
  const err = `The folder ${join(cwd, "nope")} does not exist.\nNext: mkdir -p ${join(cwd, "nope")}\n`;
  expect(await run(["diagnostics", "export", "nope/x.json"], { cwd })).toMatchObject({ code: 2, err });
  writeFileSync(join(cwd, "gateway.db"), "");
  expect(await run(["backup", "nope/x.db", "--store", "gateway.db"], { cwd })).toMatchObject({ code: 2, err });
});

test("backup writes a file that only its owner can read", async () => {
  const cwd = emptyFolder();
  expect((await runCli(["init", "--yes", "--port", "0"], { cwd })).code).toBe(0);
  const serving = startCli(["serve"], { cwd });
  await serving.until(({ out }) => out.includes("listening"));
  expect(await runCli(["backup", "copy.db"], { cwd })).toMatchObject({ code: 0 });
  expect(statSync(join(cwd, "copy.db")).mode & 0o777).toBe(0o600);
});

describe("init", () => {
  test.each([
    ["echo", []],
    ["openai", ["--model", "gpt-5-mini"]],
    ["anthropic", []],
    ["openai-compatible", ["--target", "http://127.0.0.1:11434/v1"]],
    ["http", ["--target", "http://127.0.0.1:8000/turn"]],
    ["command", ["--target", "cat"]],
  ])("writes a valid configuration with the backend %s", async (backend, more) => {
    const cwd = emptyFolder();
    const { code, err } = await runCli(["init", "gateway", "--backend", backend, "--yes", ...more], { cwd });
    expect([code, err]).toEqual([0, expect.stringMatching(/Next:\n {2}cd gateway\n {2}agent-gateway serve\n/)]);
    const folder = join(cwd, "gateway");
    expect(statSync(join(folder, "gateway.env")).mode & 0o777).toBe(0o600);
    const filled = readFileSync(join(folder, "gateway.env"), "utf8").replace(
      /_API_KEY=$/m,
      "_API_KEY=sk-of-some-length",
    );
    writeFileSync(join(folder, "gateway.env"), filled);
    expect(await runCli(["check"], { cwd: folder })).toMatchObject({
      code: 0,
      out: expect.stringContaining("is valid: 1 agent (main)"),
    });
  });

  test("overwrites nothing, and refuses invalid options", async () => {
    const cwd = emptyFolder();
    writeFileSync(join(cwd, "gateway.json5"), "{}");
    expect(await runCli(["init", "--yes"], { cwd })).toMatchObject({
      code: 1,
      err: expect.stringContaining("gateway.json5 already exists"),
    });
    expect(readFileSync(join(cwd, "gateway.json5"), "utf8")).toBe("{}");
    expect(existsSync(join(cwd, "gateway.env"))).toBe(false);
    expect(await runCli(["init", "new", "--yes", "--backend", "http"], { cwd })).toMatchObject({
      code: 2,
      err: expect.stringContaining("needs --target"),
    });
    expect(await runCli(["init", "new", "--yes", "--agent", "My Agent"], { cwd })).toMatchObject({
      code: 2,
      err: expect.stringContaining("is not a valid name for an agent"),
    });
  });

  test.each([
    ["no .gitignore", undefined],
    ["a .gitignore without a last line's end", "dist"],
    ["a .gitignore that has it", "gateway.env\r\ngateway.db*\r\n"],
  ])("excludes the secrets from git, with %s, also in a repository that is created later", async (_, ignored) => {
    const cwd = emptyFolder();
    if (ignored !== undefined) writeFileSync(join(cwd, ".gitignore"), ignored);
    await runCli(["init", "--yes"], { cwd });
    writeFileSync(join(cwd, "gateway.db-wal"), "");
    const git = (...args: string[]) => spawnSync("git", args, { cwd, encoding: "utf8" }).stdout;
    git("init");
    git("add", "-A");
    expect(git("ls-files").trim().split("\n")).toEqual([".gitignore", "gateway.json5"]);
  });

  test("git status shows no file that init and the quickstart write in a clone", () => {
    const names = ["gateway.json5", "gateway.env", "gateway.db", "gateway.db-wal", "agent.mjs", "skills/a/SKILL.md"];
    const { stdout } = spawnSync("git", ["check-ignore", "--no-index", ...names, "docs/gateway.env"], {
      cwd: root,
      encoding: "utf8",
    });
    expect(stdout.trim().split("\n")).toEqual([...names, "docs/gateway.env"]);
    expect(spawnSync("git", ["ls-files", "-ci", "--exclude-standard"], { cwd: root, encoding: "utf8" }).stdout).toBe(
      "",
    );
  });

  test("asks on a terminal, and the written configuration starts and works with the commands of its folder", async () => {
    const cwd = emptyFolder();
    const asking = startCli(["init", "--port", "0"], { cwd, terminal: true });
    await asking.until(({ out }) => out.includes("Start from"));
    asking.type("\r");
    await asking.until(({ out }) => out.includes("What is the agent called?"));
    asking.type("helper\r");
    await asking.until(({ out }) => out.includes("What answers for it?"));
    asking.type("\r");
    await asking.until(({ out }) => out.includes("Where does it keep what it knows?"));
    asking.type("\r");
    expect(await asking.ended).toMatchObject({ code: 0 });
    const serving = startCli(["serve"], { cwd });
    await serving.until(({ out }) => out.includes("listening"));
    const [url = ""] = /http:\/\/127\.0\.0\.1:\d+/.exec(serving.result.out) ?? [];
    const config = join(cwd, "gateway.json5");
    // It listens on a free port, which the file does not name.
    writeFileSync(config, readFileSync(config, "utf8").replace("port: 0", `port: ${new URL(url).port}`));
    expect(await runCli(["send", "helper", "Good morning"], { cwd })).toMatchObject({ code: 0, out: "Good morning\n" });
    chmodSync(join(cwd, "gateway.env"), 0o644);
    expect((await runCli(["doctor"], { cwd })).out).toMatch(
      /! secrets +Others on this machine can read gateway\.env\n +→ chmod 600 gateway\.env/,
    );
  });
});

describe("check", () => {
  test("reports every mistake, with file, line and column", async () => {
    const cwd = emptyFolder();
    writeFileSync(join(cwd, "gateway.json5"), '{\n  agents: { main: { backend: "ecko" } },\n  webhook: {},\n}');
    const { code, err } = await runCli(["check"], { cwd });
    expect([code, err]).toEqual([
      1,
      expect.stringMatching(/gateway\.json5:2:\d+: .*echo[\s\S]*gateway\.json5:3:3: webhook is not a key/),
    ]);
    const { out } = await runCli(["check", "--json"], { cwd });
    expect(JSON.parse(out)).toMatchObject({ ok: false, problems: [{ line: 2 }, { line: 3 }] });
  });

  test("prints the next step if there is no configuration", async () => {
    expect(await runCli(["check"])).toMatchObject({
      code: 2,
      err: "gateway.json5 does not exist.\nNext: agent-gateway init writes one here\n",
    });
  });
});

describe("mock", () => {
  test("serves the examples of the contract, and refuses invalid requests", async () => {
    const mock = startCli(["mock", "--port", "0"]);
    await mock.until(({ err }) => err.includes("listens on"));
    const [url = ""] = /http:\/\/\S+\d/.exec(mock.result.err) ?? [];
    const post = async (path: string, body: string, headers: Record<string, string> = {}) => {
      const response = await fetch(url + path, { method: "POST", body, headers });
      expect(response.headers.get("x-mock")).toBe("true");
      const text = await response.text();
      return { status: response.status, json: text.startsWith("{") || text.startsWith("[") ? JSON.parse(text) : text };
    };
    expect(await post("/api/v1/chat/send", '{"message":"x"}')).toMatchObject({
      status: 200,
      json: { status: "completed" },
    });
    expect(await post("/api/v1/chat/send", '{"message":"x"}', { prefer: "code=429" })).toMatchObject({
      status: 429,
      json: { status: 429 },
    });
    expect((await post("/api/v1/chat/send", '{"message":"x","stream":true}')).json).toMatch(/^event: turn\.started/);
    expect((await post("/hooks/wake", "{")).status).toBe(400);
    expect((await post("/api/v2", "{}")).status).toBe(404);
    expect((await post("/healthz", "")).status).toBe(405);
    const rpc = (message: unknown) => post("/rpc", JSON.stringify(message));
    const params = { agentName: "main", message: "Good morning", wait: true };
    expect((await rpc({ jsonrpc: "2.0", id: "1", method: "agent.sendMessage", params })).json).toMatchObject({
      id: "1",
      result: { reply: "Good morning" },
    });
    const batch = await rpc([
      { jsonrpc: "2.0", id: 1, method: "agent.status", params: {} },
      { jsonrpc: "2.0", method: "agent.list" },
      7,
    ]);
    expect(batch.json).toMatchObject([
      { id: 1, error: { code: -32602 } },
      { id: null, error: { code: -32600 } },
    ]);
    expect((await rpc({ jsonrpc: "2.0", id: 1, method: "agent.gone" })).json.error).toMatchObject({
      code: -32601,
      data: { name: "method-not-found" },
    });
    expect((await post("/rpc", "{")).json.error.code).toBe(-32700);
    expect((await rpc({ jsonrpc: "2.0", method: "agent.list" })).status).toBe(204);
  });
});
