import { describe, expect, test } from "vitest";
import { shareGateway, startGateway, type TestGateway } from "#test/harness/gateway.ts";
import { openHttp2 } from "#test/harness/http2.ts";
import { noteChecked } from "#test/harness/ledger.ts";
import { exchange } from "#test/harness/raw.ts";
import { createRpc } from "#test/harness/rpc.ts";
import { upgrade } from "#test/wire/ws/raw-socket.ts";
import { openSocket } from "#test/wire/ws/socket.ts";
import { recorderOf } from "./recorder.ts";

const READER = "a-token-that-reads-lists";
const tokens = [
  { name: "ops", token: "a-token-that-may-all", permissions: "*" as const },
  { name: "reader", token: READER, permissions: ["agent.list" as const] },
];
const gateway = await shareGateway({
  config: { gateway: { trustedProxies: ["127.0.0.1"], rpc: { auth: { tokens } } } },
});
const recorder = recorderOf(gateway);
const rpc = createRpc(gateway.url, tokens[0]?.token);
const SEND = { method: "POST", path: "/api/v1/chat/send" } as const;
const JSON_TYPE = { "content-type": "application/json" };
const message = { agentName: "main", message: "hi" };

test("records no request whose method is not an HTTP method", async () => {
  await using client = await openHttp2(gateway.url);
  const { status, headers } = await client.send({ method: "`touch$IFS%pwned`", path: SEND.path }, {});
  expect(status).toBe(400);
  const requestId = headers.get("x-request-id") ?? "";
  await gateway.logged("request", { requestId });
  expect(await recorder.list({ id: requestId })).toEqual([]);
});

/** The only delivery of a refused request. It is recorded at the end of the request, right after its log line. */
async function refusedAs(requestId: string, of: Pick<TestGateway, "logged" | "console"> = gateway) {
  await of.logged("request", { requestId });
  const found = await recorderOf(of).list({ id: requestId });
  expect(found).toHaveLength(1);
  const [{ delivery_id, outcome } = { delivery_id: "", outcome: "" }] = found;
  expect(outcome).toBe("refused");
  const delivery = await recorderOf(of).get(delivery_id);
  const { body, turn_id, event_id, replayable } = delivery;
  expect({ turn_id, event_id, replayable }).toEqual({ turn_id: null, event_id: null, replayable: false });
  if (body !== null) expect(delivery.bytes).toBeGreaterThan(0);
  const { name, detail } = delivery.timeline.at(-1) ?? {};
  expect(name).toBe("request.refused");
  const { surface, operation, caller, status, path } = delivery;
  return { surface, operation, caller, status, path, body, error: detail?.error };
}

async function none(requestId: string): Promise<void> {
  await gateway.logged("request", { requestId });
  expect(await recorder.list({ id: requestId })).toEqual([]);
}

describe("a refusal over REST is recorded", () => {
  const chat = { surface: "rest", operation: "chat.send", path: SEND.path };

  test.each([
    ["without a key", null],
    ["with a wrong one", "not-a-key-of-anybody"],
  ])("%s: with its operation, and without a name of a caller", async (_how, key) => {
    const { requestId } = await gateway.rest.call("chat.send", { key, body: { message: "a secret word" } });
    expect(await refusedAs(requestId)).toEqual({
      ...chat,
      caller: null,
      status: 401,
      body: null,
      error: "unauthenticated",
    });
  });

  test("for a key without the scope, with its name", async () => {
    const { requestId } = await gateway.rest.call("deliveries.list");
    expect(await refusedAs(requestId)).toMatchObject({
      surface: "rest",
      operation: "deliveries.list",
      caller: "tests",
      status: 403,
      error: "forbidden",
    });
  });

  test("for a token in clear text from another machine, and for a page of another site", async () => {
    const authorization = `Bearer ${gateway.key}`;
    const plain = await exchange(
      gateway.url,
      SEND,
      { authorization, ...JSON_TYPE, "x-forwarded-for": "203.0.113.7" },
      "{}",
    );
    const refused = { ...chat, caller: null, status: 403, body: null };
    expect(await refusedAs(plain.requestId)).toEqual({ ...refused, error: "tls-required" });
    const page = await exchange(
      gateway.url,
      SEND,
      { authorization, ...JSON_TYPE, origin: "https://pages.example" },
      "{}",
    );
    expect(await refusedAs(page.requestId)).toEqual({ ...refused, error: "origin-not-allowed" });
  });

  test("above the rate limit", async () => {
    const rest = { rateLimit: { maxRequests: 3, windowMs: 60_000 } };
    await using limited = await startGateway({ config: { gateway: { rest } } });
    for (let n = 0; n < 3; n++) await limited.rest.call("skills.list");
    const { requestId } = await limited.rest.call("skills.list");
    expect(await refusedAs(requestId, limited)).toMatchObject({
      operation: "skills.list",
      caller: "tests",
      status: 429,
    });
  });

  test.each([
    [{ message: "hi", surprise: 1 }, "invalid-request", 400],
    [{ message: "hi", agent: "mian" }, "agent-not-found", 404],
    ["{", "parse-error", 400],
  ] as const)("for work that could not start, with its body: %j is %s", async (body, error, status) => {
    const { requestId } = await gateway.rest.call("chat.send", { body });
    const sent = typeof body === "string" ? body : JSON.stringify(body);
    expect(await refusedAs(requestId)).toEqual({ ...chat, caller: "tests", status, error, body: sent });
  });

  test("without the body if it was not read, or if recorder.bodies is off", async () => {
    const text = { method: "POST", path: SEND.path } as const;
    const authorization = `Bearer ${gateway.key}`;
    const { requestId } = await exchange(gateway.url, text, { authorization, "content-type": "text/plain" }, "hi");
    expect(await refusedAs(requestId)).toMatchObject({ caller: "tests", status: 415, body: null });
    await using bare = await startGateway({ config: { recorder: { bodies: false } } });
    const { requestId: id } = await bare.rest.call("chat.send", { body: {} });
    await bare.logged("request", { requestId: id });
    const { delivery_id } = await recorderOf(bare).newest({ id });
    expect(await recorderOf(bare).get(delivery_id)).toMatchObject({ outcome: "refused", body: null, bytes: 2 });
  });

  test("with its secrets hidden", async () => {
    const { requestId } = await gateway.rest.call("chat.send", { body: { message: 5, token: "a secret word" } });
    expect((await refusedAs(requestId)).body).toBe('{"message":5,"token":"[hidden]"}');
    for (const cut of [
      '{"a":1,"token":"a secret w',
      '{"a":1,"token":"a secret \\',
      '{"a":1,"token":"a secret \\\nword"',
    ]) {
      const { requestId } = await gateway.rest.call("chat.send", { body: cut });
      expect((await refusedAs(requestId)).body).toBe('{"a":1,"token":"[hidden]"');
    }
  });
});

describe("a refusal over RPC is recorded", () => {
  test("without a token", async () => {
    const { requestId } = await rpc.send({ jsonrpc: "2.0", id: 1, method: "agent.list" }, { token: null });
    const refused = { surface: "rpc", path: "/rpc", caller: null, status: 401, error: "unauthenticated" };
    expect(await refusedAs(requestId)).toMatchObject(refused);
  });

  test("for a token that may not call the method, and for a call that could not start work", async () => {
    const call = (method: string, params: object, token?: string) =>
      rpc.send({ jsonrpc: "2.0", id: 1, method, params }, { ...(token && { token }) });
    const forbidden = await call("agent.reload", { agentName: "main" }, READER);
    expect(await refusedAs(forbidden.requestId)).toMatchObject({
      surface: "rpc",
      operation: "agent.reload",
      caller: "reader",
      status: 200,
      error: "forbidden",
    });
    const invalid = await call("agent.sendMessage", { agentName: "main" });
    const body = '{"jsonrpc":"2.0","id":1,"method":"agent.sendMessage","params":{"agentName":"main"}}';
    expect(await refusedAs(invalid.requestId)).toMatchObject({ caller: "ops", error: "invalid-request", body });
  });

  test("above the rate limit", async () => {
    const rateLimit = { maxRequests: 1, windowMs: 60_000 };
    await using limited = await startGateway({ config: { gateway: { rpc: { rateLimit } } } });
    const rpc = createRpc(limited.url);
    await rpc.call("agent.list");
    const { requestId } = await rpc.send({ jsonrpc: "2.0", id: 1, method: "agent.list" });
    expect(await refusedAs(requestId, limited)).toMatchObject({ caller: "ops", error: "rate-limited" });
  });

  test("for a WebSocket that was not opened, and for calls over an open one", async () => {
    const answer = await upgrade(gateway.url, { headers: { authorization: "Bearer not-a-token" } });
    answer.socket.destroy();
    const requestId = answer.headers["x-request-id"] ?? "";
    noteChecked(requestId);
    expect(await refusedAs(requestId)).toEqual({
      surface: "rpc",
      operation: "rpc.socket",
      path: "/rpc/ws",
      caller: null,
      status: 401,
      body: null,
      error: "unauthenticated",
    });
    using socket = await openSocket({ url: gateway.url, rpcToken: READER });
    expect((await socket.refusal("agent.sendMessage", message)).name).toBe("forbidden");
    const found = await recorder.newest({ surface: "rpc" });
    expect(found).toMatchObject({ method: "WS", operation: "agent.sendMessage", caller: "reader", outcome: "refused" });
    expect(JSON.parse((await recorder.get(found.delivery_id)).body ?? "")).toMatchObject({ params: message });
  });
});

describe("the recorded data of a refusal", () => {
  const toldOf = async (requestId: string) => {
    await gateway.logged("request", { requestId });
    return recorder.detailOf((await recorder.newest({ id: requestId })).delivery_id, "request.refused");
  };

  test("has the error of the caller, over REST and RPC, and the first error of a batch", async () => {
    const chat = await gateway.rest.call("chat.send", { body: { message: "hi", agent: "mian" } });
    const rest = { error: "agent-not-found", status: 404, detail: chat.problem.detail };
    expect([rest.detail, await toldOf(chat.requestId)]).toEqual([expect.stringContaining("mian"), rest]);
    const call = (id: number, params: object) => ({ jsonrpc: "2.0", id, method: "agent.sendMessage", params });
    const one = await rpc.send(call(1, { agentName: "main" }));
    expect(await toldOf(one.requestId)).toMatchObject({ detail: "`message` is required." });
    const send = { jsonrpc: "2.0", method: "agent.reload", params: { agentName: "main" } };
    const batch = await rpc.send([{ ...send, id: 1 }, call(2, { agentName: "main" })], { token: READER });
    expect(await toldOf(batch.requestId)).toMatchObject({
      detail: "The token `reader` may not call agent.reload.",
    });
  });
});

describe("requests that are not refusals are not recorded", () => {
  test("for reads that find nothing, unknown paths and methods, paths of no surface, and failed turns", async () => {
    await none((await gateway.rest.call("turns.get", { path: { turn_id: "turn_0" } })).requestId);
    await none((await gateway.rest.send("GET", "/api/v1/nothing")).requestId);
    await none((await gateway.rest.send("GET", "/metrics", { key: "wrong" })).requestId);
    await none((await rpc.send({ jsonrpc: "2.0", id: 1, method: "agent.lisst" })).requestId);
    await none(
      (await rpc.send({ jsonrpc: "2.0", id: 1, method: "session.get", params: { sessionId: "x" } })).requestId,
    );
    const agents = { main: { backend: "echo", echo: { failTimes: 9, fail: "broken" } } } as const;
    await using failing = await startGateway({ config: { agents } });
    const { requestId } = await failing.rest.call("chat.send", { body: { message: "hi" } });
    await failing.logged("request", { requestId });
    const [only, ...others] = await recorderOf(failing).list({ id: requestId });
    expect([only?.outcome, others]).toEqual(["failed", []]);
  });
});

describe("a flood of unauthenticated requests", () => {
  test("is recorded 20 times from one address, and removes no request of authenticated callers", async () => {
    await using flooded = await startGateway({ config: { recorder: { entries: 3 } } });
    const recorder = recorderOf(flooded);
    const kept = [];
    for (let n = 0; n < 3; n++) {
      const { deliveryId, turnId } = (await flooded.hooks.agent({ message: "kept" })).json;
      await flooded.logged("turn.ended", { turnId });
      kept.unshift(deliveryId);
    }
    let last = "";
    for (let n = 0; n < 60; n++) last = (await flooded.rest.call("chat.send", { key: null, body: {} })).requestId;
    for (let n = 0; n < 60; n++) await flooded.hooks.wake({ text: "hi" }, { token: null });
    await flooded.logged("request", { requestId: last });
    const refused = await recorder.list({ outcome: "refused", limit: "500" });
    expect(refused.length).toBeGreaterThan(0);
    expect(refused.length).toBeLessThanOrEqual(20);
    const ids = (await recorder.list({ outcome: "completed" })).map(({ delivery_id }) => delivery_id);
    expect(ids).toEqual(kept);
  });
});
