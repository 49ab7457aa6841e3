import { describe, expect, test } from "vitest";
import { createEchoBackend } from "#backends/echo.ts";
import { startChatCompletions } from "#test/backends/stand-ins/openai.ts";
import { startCli } from "#test/cli/cli.ts";
import { createPuppet } from "#test/harness/backends.ts";
import { SECRETS, type SomeConfig, startGateway } from "#test/harness/gateway.ts";
import { freePort } from "#test/harness/ports.ts";
import { connectClient, openTasks, type Result, STRANGERS, VERSION } from "./strangers.ts";

const OPEN: NonNullable<SomeConfig["gateway"]> = { mcp: { enabled: true } };

describe("a call that its client closes", () => {
  test.each([
    ["HTTP, modern", { pin: VERSION }, "http"],
    ["HTTP, legacy", "legacy", "http"],
    ["stdio, modern", { pin: VERSION }, "stdio"],
    ["stdio, legacy", "legacy", "stdio"],
  ] as const)("does not end its turn: %s", async (_, mode, way) => {
    const puppet = createPuppet();
    await using gateway = await startGateway({ config: { gateway: OPEN }, makeBackend: () => puppet.backend });
    const client = await connectClient(gateway.url, SECRETS.key, mode, way);
    const stop = new AbortController();
    const call = client.callTool({ name: "ask_main", arguments: { message: "Hello" } }, { signal: stop.signal });
    const played = await puppet.next();
    stop.abort();
    await expect(call).rejects.toThrow();
    await client.close();
    await gateway.logged("request", { operation: "mcp.tools/call" });
    expect(played.signal.aborted).toBe(false);
    played.say("Still here.");
    played.end();
    await gateway.logged("turn.ended", { outcome: "completed" });
  });
});

describe("a turn that takes longer than a call waits", () => {
  test("is answered with its turn_id, and turn_get waits for its end", async () => {
    const puppet = createPuppet();
    const makeBackend = () => puppet.backend;
    await using gateway = await startGateway({ config: { gateway: OPEN }, makeBackend, replyWaitMs: 50 });
    const client = await connectClient(gateway.url, SECRETS.key, "legacy");
    const call = async (name: string, args: Record<string, unknown>) =>
      (await client.callTool({ name, arguments: args })) as Result;
    const { structuredContent = {} } = await call("ask_main", { message: "Hello" });
    expect(structuredContent).toMatchObject({ status: "running" });
    const { turn_id } = structuredContent;
    expect((await call("turn_get", { turn_id, wait_seconds: 50 })).structuredContent).toMatchObject({
      status: "running",
    });
    const played = await puppet.next();
    played.say("Done.");
    played.end();
    await gateway.logged("turn.ended");
    expect((await call("turn_get", { turn_id })).structuredContent).toMatchObject({
      status: "completed",
      reply: "Done.",
    });
  });

  test("is a task for a client that takes tasks, which can be cancelled", async () => {
    const puppet = createPuppet();
    const makeBackend = () => puppet.backend;
    await using gateway = await startGateway({ config: { gateway: OPEN }, makeBackend, replyWaitMs: 50 });
    const session = await openTasks(gateway.url, SECRETS.key);
    const first = await session.callTool("ask_main", { message: "Hello" });
    expect(first.kind).toBe("task");
    const played = await puppet.next();
    played.say("Done.");
    played.end();
    expect(await first.settle()).toMatchObject({ outcome: { status: "completed" } });
    const second = await session.callTool("ask_main", { message: "Again" });
    await puppet.next();
    await second.cancel();
    await gateway.logged("turn.ended", { outcome: "cancelled" });
  });
});

test.each(["http", "stdio"] as const)("a client that listens is notified of a new agent: %s", async (way) => {
  await using gateway = await startGateway({ config: { gateway: OPEN } });
  const client = await connectClient(gateway.url, SECRETS.key, { pin: VERSION }, way);
  const changed = new Promise<void>((resolve) => {
    client.setNotificationHandler("notifications/tools/list_changed", () => resolve());
  });
  const subscription = await client.listen({ toolsListChanged: true });
  await gateway.reload({
    gateway: { ...OPEN, defaultAgent: "main" },
    agents: { main: { backend: "echo" }, other: { backend: "echo" } },
  });
  await changed;
  expect((await client.listTools()).tools.map(({ name }) => name)).toEqual(["ask_main", "ask_other", "turn_get"]);
  await subscription.close();
});

test("a client that starts a program reads its tasks", async () => {
  const puppet = createPuppet();
  const makeBackend = () => puppet.backend;
  await using gateway = await startGateway({ config: { gateway: OPEN }, makeBackend, replyWaitMs: 50 });
  const env = { GATEWAY_URL: gateway.url, REST_API_KEY: SECRETS.key };
  const { type, until, result, child, ended } = startCli(["mcp"], { env, isOpen: true });
  const lines = () => result.out.split("\n").slice(0, -1);
  let sent = 0;
  const send = async (method: string, params: object) => {
    const _meta = {
      "io.modelcontextprotocol/protocolVersion": VERSION,
      "io.modelcontextprotocol/clientInfo": { name: "raw", version: "1.0.0" },
      "io.modelcontextprotocol/clientCapabilities": { extensions: { "io.modelcontextprotocol/tasks": {} } },
    };
    type(`${JSON.stringify({ jsonrpc: "2.0", id: ++sent, method, params: { ...params, _meta } })}\n`);
    await until(() => lines().length === sent);
    return JSON.parse(lines().at(-1) ?? "").result;
  };
  const task = await send("tools/call", { name: "ask_main", arguments: { message: "Hello" } });
  expect(task).toMatchObject({ resultType: "task", status: "working" });
  const played = await puppet.next();
  played.say("Done.");
  played.end();
  await gateway.logged("turn.ended");
  expect(await send("tasks/get", { taskId: task.taskId })).toMatchObject({
    status: "completed",
    result: { structuredContent: { reply: "Done." } },
  });
  child.stdin.end();
  expect(await ended).toMatchObject({ code: 0, err: "" });
});

test("an agent whose tool is its own gateway ends by the hop limit", async () => {
  const port = await freePort();
  const again = { calls: [{ name: "me__ask_main", args: '{"message":"Again"}' }] };
  await using model = await startChatCompletions({ text: ["Done."] });
  model.say(again, again, again, again);
  const tool = {
    type: "http" as const,
    url: `http://127.0.0.1:${port}/mcp`,
    headers: { authorization: `Bearer ${SECRETS.key}` },
  };
  const config: SomeConfig = {
    gateway: { ...OPEN, port },
    providers: { local: { type: "openai-compatible", baseUrl: `${model.url}/v1` } },
    tools: { me: tool },
    agents: { main: { backend: "model", models: { one: { provider: "local", model: "m" } }, tools: ["me/*"] } },
  };
  await using gateway = await startGateway({ config });
  const client = await connectClient(gateway.url, SECRETS.key, { pin: VERSION });
  const answer = (await client.callTool({ name: "ask_main", arguments: { message: "Begin" } })) as Result;
  expect(answer.content[0]?.text).toBe("Done.");
  const { json } = await gateway.console.call("turns.list", {});
  expect(json.turns).toHaveLength(3);
  expect(JSON.stringify(model.seen.at(-3))).toContain("as in a loop");
});

describe("a key", () => {
  const keys = (more: object) => ({ rest: { auth: { keys: [{ name: "tests", key: SECRETS.key, ...more }] } } });

  test.each(Object.entries(STRANGERS).filter(([name]) => /legacy|AI SDK|modern/.test(name)))(
    "has its rate limit: %s",
    async (_, connect) => {
      const gateway = { ...OPEN, ...keys({ rateLimit: { maxRequests: 6, windowMs: 3_600_000 } }) };
      await using opened = await startGateway({ config: { gateway } });
      const stranger = await connect(opened.url, SECRETS.key);
      const calls = Array.from({ length: 6 }, () => stranger.call("ask_main", { message: "Hello" }));
      const failed = (await Promise.allSettled(calls)).filter(({ status }) => status === "rejected");
      expect(failed.length).toBeGreaterThan(0);
      expect(String((failed[0] as PromiseRejectedResult).reason)).toMatch(/rate limit|too many/i);
    },
  );

  test("has its budget", async () => {
    const gateway = { ...OPEN, ...keys({ budget: { tokens: 10, per: "day" } }) };
    await using opened = await startGateway({
      config: { gateway },
      makeBackend: (_, { echo }) => createEchoBackend(echo),
    });
    const client = await connectClient(opened.url, SECRETS.key, { pin: VERSION });
    const ask = async (message: string) =>
      (await client.callTool({ name: "ask_main", arguments: { message } })) as Result;
    await ask("A message that is longer than the budget of its key allows.");
    expect(await ask("Another one.")).toMatchObject({
      isError: true,
      content: [{ text: expect.stringContaining("Budget") }],
    });
  });
});
