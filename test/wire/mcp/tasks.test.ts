import { createTaskSessionFromClient } from "@modelcontextprotocol/ext-tasks/client";
import { describe, expect, test } from "vitest";
import { createPuppet } from "#test/harness/backends.ts";
import { startGateway } from "#test/harness/gateway.ts";
import { call, fakeTools, LEGACY, MODERN, OPEN, openClient, post, taskOf } from "./clients.ts";

const TASKS = { extensions: { "io.modelcontextprotocol/tasks": {} } };
const ASK = { name: "ask_main", arguments: { message: "hi" } };
const capabilities = TASKS;

async function start(options = {}) {
  const puppet = createPuppet();
  const config = { gateway: OPEN };
  const gateway = await startGateway({ config, makeBackend: () => puppet.backend, replyWaitMs: 50, ...options });
  return { gateway, puppet };
}

describe("a client that takes tasks", () => {
  test("gets a task for a turn that goes on, reads it, and gets the reply", async () => {
    const { gateway, puppet } = await start();
    await using _ = gateway;
    const { json } = await call(gateway.url, "tools/call", ASK, { capabilities });
    const { turn, say, end } = await puppet.next();
    const task = { taskId: turn.turnId, status: "working", pollIntervalMs: 2_000 };
    expect(json.result).toMatchObject({ ...task, resultType: "task", ttlMs: expect.any(Number) });
    const read = () => call(gateway.url, "tasks/get", { taskId: turn.turnId }, { capabilities });
    expect((await read()).json.result).toMatchObject({ ...task, resultType: "complete" });
    say("At last");
    end();
    await (await gateway.rest.stream("turns.events", { path: { turn_id: turn.turnId } })).all();
    const { result } = (await read()).json;
    expect(result).toMatchObject({
      status: "completed",
      result: { structuredContent: { reply: "At last" }, _meta: { "agent-gateway/untrusted": true } },
    });
  });

  test("gets the result at once for a turn that ends soon", async () => {
    await using gateway = await startGateway({ config: { gateway: OPEN } });
    const { json } = await call(gateway.url, "tools/call", ASK, { capabilities });
    expect(json.result).toMatchObject({ resultType: "complete", structuredContent: { reply: "hi" } });
  });

  test("cancels a task, and with it the turn", async () => {
    const { gateway, puppet } = await start();
    await using _ = gateway;
    await call(gateway.url, "tools/call", ASK, { capabilities });
    const { turn } = await puppet.next();
    const named = { taskId: turn.turnId };
    const cancelled = await call(gateway.url, "tasks/cancel", named, { capabilities });
    expect(cancelled.json.result).toMatchObject({ resultType: "complete" });
    const { json } = await call(gateway.url, "tasks/get", named, { capabilities });
    expect(json.result).toMatchObject({ status: "cancelled" });
    const read = await gateway.rest.call("turns.get", { path: { turn_id: turn.turnId } });
    expect(read.json.status).toBe("cancelled");
    // Again changes nothing.
    expect((await call(gateway.url, "tasks/cancel", named, { capabilities })).json.result).toBeDefined();
    expect(
      (await call(gateway.url, "tasks/update", { ...named, inputResponses: {} }, { capabilities })).json.result,
    ).toBeDefined();
  });

  test.each(["tasks/get", "tasks/cancel", "tasks/update"])("gets an error of %s for another's task", async (method) => {
    await using gateway = await startGateway({ config: { gateway: OPEN } });
    for (const taskId of ["turn_01M7YN0XEMM1B7E5S8YF3GKP2N", "x", ""]) {
      const { json } = await call(gateway.url, method, { taskId, inputResponses: {} }, { capabilities });
      expect(json.error).toMatchObject({ code: -32602 });
    }
    expect(
      (await call(gateway.url, method, {}, { capabilities, headers: { "mcp-name": "x" } })).json.error,
    ).toBeDefined();
  });

  test("gets a failed turn as a completed task, whose result has the failure", async () => {
    const task = async () => taskOf("failed", { text: "It failed.", isError: true });
    await using gateway = await startGateway({ config: { gateway: OPEN }, mcpTools: fakeTools({ task }) });
    const { json } = await call(gateway.url, "tasks/get", { taskId: "turn_1" }, { capabilities });
    expect(json.result).toMatchObject({ status: "completed", result: { isError: true } });
  });
});

describe("a client that does not take tasks", () => {
  test.each([MODERN, LEGACY] as const)("gets none, of %s", async (revision) => {
    const { gateway } = await start();
    await using _ = gateway;
    const { json } = await call(gateway.url, "tools/call", ASK, { revision });
    expect(json.result).toMatchObject({ structuredContent: { status: "running" } });
    expect(json.result.taskId).toBeUndefined();
  });

  test("cannot read one", async () => {
    await using gateway = await startGateway({ config: { gateway: OPEN } });
    const { status, json } = await call(gateway.url, "tasks/get", { taskId: "turn_1" });
    expect(status).toBe(400);
    expect(json.error).toMatchObject({ code: -32021, data: { requiredCapabilities: TASKS } });
  });
});

test("the official client of the extension calls, polls and gets the reply", async () => {
  const { gateway, puppet } = await start();
  await using _ = gateway;
  const client = await openClient(gateway.url);
  const session = createTaskSessionFromClient(client, {
    endpointId: "tests",
    rawDispatch: async (request) => {
      const { result, error } = (await (
        await post(gateway.url, { jsonrpc: "2.0", id: 1, ...(request as object) })
      ).json()) as { result: never; error: never };
      return error === undefined ? { kind: "result", result } : { kind: "error", error };
    },
    v2RequestFraming: {
      protocolVersion: MODERN,
      clientInfo: { name: "tests", version: "1" },
      clientCapabilities: TASKS,
    },
  });
  try {
    const execution = await session.callTool("ask_main", { message: "hi" });
    const { say, end } = await puppet.next();
    say("At last");
    end();
    const { outcome } = await execution.settle();
    expect(JSON.stringify(outcome)).toContain("At last");
  } finally {
    await session.close();
  }
});
