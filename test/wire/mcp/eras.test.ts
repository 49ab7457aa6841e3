import { describe, expect, test } from "vitest";
import { SECRETS, shareGateway, startGateway } from "#test/harness/gateway.ts";
import { skillsFolder, skillText } from "#test/harness/skills.ts";
import { recorderOf } from "../rest/recorder.ts";
import { call, LEGACY, MODERN, OPEN, openClient } from "./clients.ts";

const UNTRUSTED = "agent-gateway/untrusted";

const gateway = await shareGateway({ config: { gateway: OPEN } });

describe.each([MODERN, LEGACY] as const)("a client of %s", (revision) => {
  test("connects, lists the tools and calls an agent", async () => {
    const client = await openClient(gateway.url, { revision });
    expect(client.getNegotiatedProtocolVersion()).toBe(revision);
    expect(client.getServerVersion()).toMatchObject({ name: "agent-gateway", title: "Agent Gateway" });
    const { tools } = await client.listTools();
    expect(tools.map(({ name }) => name)).toEqual(["ask_main", "turn_get"]);
    const result = await client.callTool({ name: "ask_main", arguments: { message: "Hello" } });
    expect(result).toMatchObject({
      content: [{ type: "text", text: "Hello" }, {}],
      structuredContent: { status: "completed", reply: "Hello" },
      _meta: { "agent-gateway/untrusted": true },
    });
  });

  test("gets the refusal of an unknown tool as an error of the protocol", async () => {
    const client = await openClient(gateway.url, { revision });
    await expect(client.callTool({ name: "nobody", arguments: {} })).rejects.toMatchObject({
      code: -32602,
      message: "Invalid params: There is no tool `nobody`. tools/list has the tools of your key.",
      data: { name: "invalid-params", status: 400 },
    });
  });

  test("gets wrong arguments as a result that its model can read", async () => {
    const client = await openClient(gateway.url, { revision });
    const result = await client.callTool({ name: "ask_main", arguments: { massage: "Hello" } });
    expect(result).toMatchObject({ isError: true, content: [{ type: "text" }] });
    expect(result._meta?.[UNTRUSTED]).toBeUndefined();
  });

  test("finds the mark of untrusted text on each answer that can have text of senders or agents", async () => {
    await using open = await startGateway({ config: { gateway: { mcp: { enabled: true, operator: "write" } } } });
    const client = await openClient(open.url, { revision, key: SECRETS.adminKey });
    const marked = async (name: string, args: Record<string, unknown> = {}) => {
      const { _meta, isError } = await client.callTool({ name, arguments: args });
      return [isError === true, _meta?.[UNTRUSTED] === true];
    };
    await client.callTool({ name: "ask_main", arguments: { message: "Obey me." } });
    for (const name of ["list_turns", "find_deliveries"])
      expect([name, await marked(name)]).toEqual([name, [false, true]]);
    const [delivery] = await recorderOf(open).list();
    const args = { delivery_id: String(delivery?.delivery_id) };
    expect(await marked("explain_delivery", args)).toEqual([false, true]);
    expect(await marked("turn_get", { turn_id: String(delivery?.turn_id) })).toEqual([false, true]);
    expect(await marked("budgets")).toEqual([false, false]);
    expect(await marked("explain_delivery", { delivery_id: "none" })).toEqual([true, false]);
  });
});

test("the header Idempotency-Key makes the repeat of a call safe", async () => {
  const headers = { "idempotency-key": "once" };
  const ask = async (message: string) => {
    const params = { name: "ask_main", arguments: { message }, _meta: { progressToken: message.length } };
    const { json, headers: got } = await call(gateway.url, "tools/call", params, { headers });
    return { ...json.result, replayed: got.get("idempotent-replayed") };
  };
  const first = await ask("Hello");
  const again = await ask("Hello");
  expect(again.structuredContent.turn_id).toBe(first.structuredContent.turn_id);
  expect([first.replayed, again.replayed]).toEqual([null, "true"]);
  expect(await ask("Another message")).toMatchObject({ isError: true, replayed: null });
  const { json } = await call(gateway.url, "tools/call", { name: "ask_main" }, { headers: { "idempotency-key": "" } });
  expect(json.error).toMatchObject({ code: -32600, data: { name: "invalid-request" } });
});

test("clients are not promised notifications for which there is no stream", async () => {
  const dir = skillsFolder({ quote: skillText("quote", "Writes a quote.") });
  await using served = await startGateway({ config: { gateway: OPEN, skills: { dirs: [dir] } } });
  for (const [revision, listChanged] of [
    [LEGACY, false],
    [MODERN, true],
  ] as const) {
    const client = await openClient(served.url, { revision, key: SECRETS.adminKey });
    expect(client.getServerCapabilities()).toMatchObject({ tools: { listChanged }, resources: { listChanged } });
  }
});

test("an agent and the tools of operators that a reload takes away are gone at the next call", async () => {
  const agents = { main: { backend: "echo" as const }, other: { backend: "echo" as const } };
  const gatewayOf = (mcp: object) => ({ defaultAgent: "main", mcp: { enabled: true, ...mcp } });
  await using served = await startGateway({ config: { gateway: gatewayOf({ operator: "write" }), agents } });
  const ask = async (name: string, args: object) =>
    (await call(served.url, "tools/call", { name, arguments: args }, { key: SECRETS.adminKey })).json;
  expect(await ask("list_turns", {})).toHaveProperty("result.structuredContent");
  await served.reload({ gateway: gatewayOf({ agents: ["main"] }), agents });
  for (const json of [await ask("ask_other", { message: "Hello" }), await ask("list_turns", {})])
    expect(json).toMatchObject({ error: { code: -32602 } });
});

test("lists are private, and may be cached for ten seconds", async () => {
  const client = await openClient(gateway.url);
  expect(await client.listTools()).toMatchObject({ ttlMs: 10_000, cacheScope: "private" });
});

test("the server is off by default, and a reload opens and closes it", async () => {
  await using closed = await startGateway();
  const words =
    "The MCP server is off here: set gateway.mcp.enabled to true. It is served on the listeners that serve REST.";
  await expect(openClient(closed.url)).rejects.toThrow(words);
  await closed.reload({ gateway: OPEN });
  const client = await openClient(closed.url);
  expect((await client.listTools()).tools).toHaveLength(2);
  await closed.reload({});
  await expect(client.callTool({ name: "ask_main", arguments: { message: "x" } })).rejects.toThrow(words);
});
