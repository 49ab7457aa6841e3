import { expect, test } from "vitest";
import { shareGateway, startGateway } from "#test/harness/gateway.ts";
import { call, fakeTools, LEGACY, MODERN, messageOf, OPEN, post, taskOf } from "./clients.ts";

const gateway = await shareGateway({ config: { gateway: OPEN } });
const TASKS = { extensions: { "io.modelcontextprotocol/tasks": {} } };

const METHODS = [
  ...["initialize", "ping", "server/discover", "tools/list", "tools/call", "tasks/get", "tasks/update", "tasks/cancel"],
  ...["tasks/list", "tasks/result", "resources/list", "resources/read", "resources/templates/list", "skills/list"],
  ...["skills/get", "completion/complete", "logging/setLevel", "notifications/cancelled", "notifications/initialized"],
  ...["", null, 5, "__proto__", "constructor", "x".repeat(5_000)],
];
const VALUES = [
  ...[null, 0, -1, 1.5, 1e30, "", "x", "x".repeat(5_000), true, [], [1], {}, { a: 1 }, "\u0000"],
  ...[{ _meta: 5 }, { _meta: { progressToken: {} } }, { _meta: { "io.modelcontextprotocol/protocolVersion": 5 } }],
  ...[{ _meta: { "agent-gateway/hops": {} } }, { name: {}, arguments: {} }, { name: "ask_main", arguments: "x" }],
  ...[{ name: "ask_main", arguments: { message: 5 } }, { name: "ask_main", arguments: [] }, { name: "ask_main" }],
  ...[{ uri: "skill://%ff/SKILL.md" }, { uri: "skill://../../etc/passwd" }, { uri: 5 }, { cursor: "x" }],
  ...[{ taskId: {} }, { taskId: "turn_" }, { notifications: 5 }, { notifications: { taskIds: ["a"] } }],
];
function isObject(value: unknown): value is object {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

test.each([MODERN, LEGACY] as const)("no message of %s is answered with a failure of the gateway", async (revision) => {
  const sent = { revision, capabilities: TASKS };
  for (const method of METHODS)
    for (const value of VALUES) {
      const message = messageOf(String(method), isObject(value) ? value : {}, sent);
      const params = isObject(value) ? message.params : value;
      const res = await post(gateway.url, { ...message, method, params }, sent);
      const text = await res.text();
      const what = JSON.stringify([method, value]).slice(0, 200);
      expect(res.status, what).toBeLessThan(500);
      // The server package has this code for a handshake that it cannot read.
      if (method !== "initialize") expect(text, what).not.toContain("-32603");
    }
  expect(gateway.logs.filter(({ level }) => level === "error")).toEqual([]);
});

test("ids and headers of any form are answered", async () => {
  for (const id of VALUES) {
    const res = await post(gateway.url, { ...messageOf("tools/list"), id });
    expect(res.status).toBeLessThan(500);
    await res.text();
  }
  for (const name of ["mcp-method", "mcp-name", "mcp-protocol-version", "mcp-session-id", "mcp-param-x", "accept"])
    for (const value of ["\xff", "a, b", "x".repeat(4_000)]) {
      const res = await post(gateway.url, messageOf("tools/list"), { headers: { [name]: value } });
      expect(res.status).toBeLessThan(500);
      await res.text();
    }
});

test("the cause of an unexpected error stays in the log, whatever the method", async () => {
  const fail = () => Promise.reject(new Error("at /a/secret/path"));
  const mcpTools = fakeTools({ list: fail, call: fail, start: fail, task: fail, cancel: fail });
  await using own = await startGateway({ config: { gateway: OPEN }, mcpTools });
  for (const [method, params] of [
    ["tools/list", {}],
    ["tools/call", { name: "ask_main", arguments: {} }],
    ["tasks/get", { taskId: "turn_1" }],
    ["tasks/cancel", { taskId: "turn_1" }],
  ] as const)
    for (const revision of [MODERN, LEGACY] as const) {
      const { json } = await call(own.url, method, params, { revision, capabilities: TASKS });
      if (revision === LEGACY && method.startsWith("tasks/")) continue;
      expect(json.error).toMatchObject({ code: -32603, message: "Internal error.", data: { name: "internal" } });
      expect(JSON.stringify(json)).not.toContain("secret");
    }
  expect(own.linesOf("request", { error: "internal" }).length).toBeGreaterThanOrEqual(6);
});

test("calls and tasks are answered without the lists of tools and skills, which may be long", async () => {
  const list = () => {
    throw new Error("a list is built");
  };
  const mcpTools = fakeTools({
    ...{ list, skills: { list, find: () => undefined } },
    call: async () => ({ text: "hi" }),
    task: async () => taskOf("working"),
  });
  await using own = await startGateway({ config: { gateway: OPEN }, mcpTools });
  const look = { name: "look", arguments: {} };
  for (const [method, params, revision] of [
    ["tools/call", look, MODERN],
    ["tasks/get", { taskId: "turn_1" }, MODERN],
    ["tools/call", look, LEGACY],
    ["ping", {}, LEGACY],
  ] as const) {
    const { json } = await call(own.url, method, params, { revision, capabilities: TASKS });
    expect(json).toMatchObject({ result: {} });
  }
});

test("a key of the scope chat cannot call a tool of operators, and the refusal is recorded", async () => {
  const mcp = { enabled: true, operator: "write" as const };
  await using own = await startGateway({ config: { gateway: { mcp } } });
  const { json } = await call(own.url, "tools/call", { name: "pause_agent", arguments: { agent: "main" } });
  expect(json.error).toMatchObject({ code: -32001, data: { name: "forbidden", status: 403 } });
  const admin = await call(own.url, "tools/list", {}, { key: own.adminKey });
  expect(admin.json.result.tools.map(({ name }: { name: string }) => name)).toContain("pause_agent");
  const recorded = await own.console.call("deliveries.list");
  expect(recorded.json.deliveries).toMatchObject([{ path: "/mcp", outcome: "refused" }]);
});

test("a client that listens for tasks must declare the extension", async () => {
  const params = { notifications: { taskIds: ["turn_1"] } };
  const { status, json } = await call(gateway.url, "subscriptions/listen", params);
  expect(status).toBe(400);
  expect(json).toMatchObject({ id: 7, error: { code: -32021, data: { requiredCapabilities: TASKS } } });
});
