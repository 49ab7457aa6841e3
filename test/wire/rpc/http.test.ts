import { describe, expect, test } from "vitest";
import { SECRETS, shareGateway, startGateway } from "#test/harness/gateway.ts";
import { exchange, openConnection, requestText } from "#test/harness/raw.ts";
import { createRpc, RPC } from "#test/harness/rpc.ts";

// What the door of POST /rpc does before the dispatcher is asked, and after.

const gateway = await shareGateway({ config: { gateway: { trustedProxies: ["127.0.0.1"] } } });
const rpc = createRpc(gateway.url);
const LIST = JSON.stringify({ jsonrpc: "2.0", id: "a", method: "agent.list" });
const good = { authorization: `Bearer ${SECRETS.rpcToken}`, "content-type": "application/json" };
let addresses = 0;
const elsewhere = () => ({ "x-forwarded-for": `198.51.100.${++addresses}`, "x-forwarded-proto": "https" });
const hello = { agentName: "main", message: "hi" };

describe("POST /rpc", () => {
  test.each(["GET", "HEAD", "PUT", "PATCH", "DELETE", "OPTIONS"])("is not %s: 405 with Allow", async (method) => {
    const reply = await exchange(gateway.url, { method, path: "/rpc" }, good);
    expect([reply.status, reply.headers.get("allow")]).toEqual([405, "POST"]);
    if (method !== "HEAD") expect(reply.json).toMatchObject({ error: { code: -32600 }, id: null });
  });

  test.each(["/rpc/", "/rpc/agent.list"])("is at this path alone, not %s", async (path) => {
    const reply = await exchange(gateway.url, { method: "POST", path }, good, LIST);
    expect(reply.status).toBe(404);
    expect(JSON.parse(reply.text)).toMatchObject({ error: { code: -32002, data: { name: "not-found" } }, id: null });
  });

  test("looks at no query", async () => {
    expect((await exchange(gateway.url, { ...RPC, path: "/rpc?x=1" }, good, LIST)).status).toBe(200);
  });

  test("takes no body without a type, and none that is compressed", async () => {
    const { authorization } = good;
    expect((await exchange(gateway.url, RPC, { authorization }, LIST)).status).toBe(415);
    expect((await rpc.send(LIST, { headers: { "content-encoding": "gzip" } })).status).toBe(415);
  });

  test("refuses another site's page, a long address and a missing host in the words of RPC", async () => {
    const foreign = await rpc.send(LIST, { headers: { origin: "https://pages.example" } });
    expect([foreign.status, foreign.error]).toEqual([403, "origin-not-allowed"]);
    const rebound = await rpc.send(LIST, { headers: { host: "rebound.example" } });
    expect([rebound.status, rebound.error]).toEqual([403, "origin-not-allowed"]);
    const long = await exchange(gateway.url, { ...RPC, path: `/rpc?${"a".repeat(9_000)}` }, good, LIST);
    expect([long.status, long.error]).toEqual([414, "uri-too-long"]);
  });

  test("waits for a body only so long", async () => {
    await using impatient = await startGateway({ requestMs: 50 });
    const reply = await exchange(impatient.url, RPC, { ...good, "content-length": "100" }, "{");
    expect([reply.status, reply.error]).toEqual([408, "request-timeout"]);
  });

  test("says where RPC is found, as the caller found it", async () => {
    const call = { jsonrpc: "2.0", id: 1, method: "rpc.discover" };
    const headers = { host: "localhost:8080" };
    const { json } = await rpc.send(call, { headers });
    expect(json.result).toMatchObject({ servers: [{ url: "http://localhost:8080/rpc" }] });
    const served = await exchange(gateway.url, { method: "GET", path: "/openrpc.json" }, headers);
    expect(json.result).toEqual(served.json);
  });
});

describe("a caller without a good token", () => {
  test.each([
    ["no token", {}],
    ["a wrong token", { authorization: "Bearer wrong" }],
    ["a token of REST", { authorization: `Bearer ${SECRETS.key}` }],
    ["another scheme", { authorization: "Basic b3BzOm9wcw==" }],
  ])("is 401 with -32000 and its id: %s", async (_, authorization) => {
    const headers = { "content-type": "application/json", ...elsewhere(), ...authorization };
    const reply = await exchange(gateway.url, RPC, headers as Record<string, string>, LIST);
    expect([reply.status, reply.headers.get("www-authenticate")]).toEqual([401, 'Bearer realm="agent-gateway"']);
    expect(reply.json).toMatchObject({ error: { code: -32000, message: "Authentication failed" }, id: "a" });
  });

  const idFor = async (body: string | Buffer, headers: Record<string, string> = {}) => {
    const reply = await exchange(gateway.url, RPC, { ...elsewhere(), ...headers }, body);
    expect(reply.status).toBe(401);
    return reply.json.id;
  };
  const padded = (length: number) => {
    const start = '{"jsonrpc":"2.0","id":7,"method":"';
    return `${start}${"x".repeat(length - start.length - 2)}"}`;
  };

  test("is told the id that a body of up to 4 KiB has", async () => {
    expect(await idFor(padded(4096))).toBe(7);
    expect(await idFor(padded(4097))).toBeNull();
    expect(await idFor('{"id":9007199254740993}')).toBe(9007199254740992);
    expect(await idFor('{"id":{}}')).toBeNull();
    expect(await idFor('[{"id":1}]')).toBeNull();
    expect(await idFor("{")).toBeNull();
    expect(await idFor("")).toBeNull();
    expect(await idFor("[".repeat(4000))).toBeNull();
    expect(await idFor(Buffer.from([0xff, 0xfe]))).toBeNull();
  });

  test("is not asked for a body that waits, nor read past 4 KiB", async () => {
    await using connection = await openConnection(gateway.url);
    connection.write(requestText(RPC, { ...elsewhere(), expect: "100-continue", "content-length": "20" }));
    const reply = await connection.reply(RPC);
    expect([reply.status, reply.json.id, connection.interim()]).toEqual([401, null, 0]);
    const headers = { ...elsewhere(), "content-length": String(10 ** 9) };
    const large = await exchange(gateway.url, RPC, headers, "x".repeat(100));
    expect([large.status, large.headers.get("connection")]).toEqual([401, "close"]);
  });

  test("learns nothing else: not the type, not the size, not the method that it calls", async () => {
    const call = { jsonrpc: "2.0", id: 1, method: "nothing" };
    const headers = { ...elsewhere(), "content-type": "text/plain" };
    expect((await rpc.send(call, { token: null, headers })).status).toBe(401);
  });

  test("over clear text from another machine is -32000 too, and 403", async () => {
    const headers = { "x-forwarded-for": "203.0.113.7", "x-forwarded-proto": "http" };
    const reply = await rpc.send(LIST, { headers });
    expect([reply.status, reply.headers.get("www-authenticate")]).toEqual([403, null]);
    expect(reply.json).toMatchObject({ error: { code: -32000, data: { name: "tls-required" } }, id: "a" });
  });

  test("F29: who guesses is told to wait from the 21st time on, and its connection is closed; a good token passes", async () => {
    const from = elsewhere();
    await using connection = await openConnection(gateway.url);
    for (let n = 1; n <= 21; n++) {
      connection.write(requestText(RPC, { ...from, authorization: `Bearer guess ${n}` }, LIST));
      const { status, headers, json } = await connection.reply(RPC);
      expect([status, json.id]).toEqual([401, "a"]);
      expect(headers.has("retry-after")).toBe(n === 21);
    }
    await connection.closed;
    const passed = await rpc.send(LIST, { headers: from });
    expect(passed.status).toBe(200);
    await gateway.logged("request", { requestId: passed.requestId });
    expect(gateway.linesOf("auth.failed", { address: from["x-forwarded-for"] })).toHaveLength(20);
    expect(JSON.stringify(gateway.logs)).not.toContain("guess 1");
  });
});

describe("an idempotency key", () => {
  const send = (params: object, headers: Record<string, string> = {}) =>
    rpc.call("agent.sendMessage", { ...hello, ...params }, { headers });

  test("in the header is as good as one among the params", async () => {
    const { result: first } = await send({}, { "idempotency-key": "one" });
    expect((await send({}, { "idempotency-key": "one" })).result).toEqual({ ...first, replayed: true });
    expect((await send({ idempotencyKey: "one" })).result).toEqual({ ...first, replayed: true });
    const both = await send({ idempotencyKey: "one" }, { "idempotency-key": "one" });
    expect(both.result).toEqual({ ...first, replayed: true });
  });

  test("in both places must be the same", async () => {
    const { error } = await send({ idempotencyKey: "one" }, { "idempotency-key": "two" });
    expect(error).toMatchObject({ code: -32602, data: { name: "invalid-params" } });
  });

  test.each(["", "é", "x".repeat(256), " two"])("is refused where it is none: %j", async (key) => {
    const text = JSON.stringify({ jsonrpc: "2.0", id: 1, method: "agent.sendMessage", params: hello });
    await using connection = await openConnection(gateway.url);
    // As bytes: fetch would not send some of these. HTTP takes the blanks around a value away.
    connection.write(requestText(RPC, { ...good, "idempotency-key": key }, text));
    const { json } = await connection.reply(RPC);
    if (key === " two") expect(json).toHaveProperty("result");
    else expect(json).toMatchObject({ error: { code: -32602 }, id: 1 });
  });

  test("with a batch is 400, and nothing of it is done", async () => {
    const call = { jsonrpc: "2.0", id: 1, method: "agent.sendMessage", params: { ...hello, sessionId: "batched" } };
    const reply = await rpc.send([call], { headers: { "idempotency-key": "three" } });
    expect([reply.status, reply.json]).toMatchObject([400, { error: { code: -32600 }, id: null }]);
    expect(await gateway.gateway.store.getSession("batched")).toBeUndefined();
  });

  test("is no affair of calls that start nothing", async () => {
    const reply = await rpc.send(LIST, { headers: { "idempotency-key": "" } });
    expect(reply.json).toHaveProperty("result");
  });
});

describe("the surface", () => {
  test("is 404 where it is switched off, and the start log says so", async () => {
    await using off = await startGateway({ config: { gateway: { rpc: { enabled: false } } } });
    for (const path of ["/rpc", "/rpc/ws"]) {
      const reply = await exchange(off.url, { method: "POST", path }, good, LIST);
      expect([reply.status, reply.error]).toEqual([404, "not-found"]);
    }
    expect(off.linesOf("surface.off", { surface: "rpc" })).toHaveLength(1);
  });

  test("closes and opens again by a reload", async () => {
    await using turned = await startGateway();
    const client = createRpc(turned.url);
    await turned.reload({ gateway: { rpc: { enabled: false } } });
    expect((await client.send(LIST)).status).toBe(404);
    await turned.reload({});
    expect((await client.send(LIST)).status).toBe(200);
  });

  test("has a rate limit where one is set: each call of a batch counts, of each token by itself", async () => {
    const rateLimit = { maxRequests: 3, windowMs: 60_000 };
    await using limited = await startGateway({ config: { gateway: { rpc: { rateLimit } } } });
    const client = createRpc(limited.url);
    const batch = [1, 2, 3, 4].map((id) => ({ jsonrpc: "2.0", id, method: id === 2 ? "nothing" : "system.info" }));
    const { json } = await client.send(batch);
    const names = (json as unknown as { error?: { data: { name: string } } }[]).map(({ error }) => error?.data.name);
    expect(names).toEqual([undefined, "method-not-found", undefined, "rate-limited"]);
    const { error } = await client.call("agent.list");
    expect(error).toMatchObject({ code: -32004, message: "Rate limit exceeded" });
    expect(error?.data.retryAfterMs).toBeGreaterThan(50_000);
    expect((await client.call("agent.list", {}, { token: SECRETS.consoleToken })).error).toBeUndefined();
  });

  test("tells a token that is named `console` from the console's own: in what it counts, and in what was sent before", async () => {
    const tokens = [{ name: "console", token: "a-token-of-that-name", permissions: "*" as const }];
    const rpc = { rateLimit: { maxRequests: 1, windowMs: 60_000 }, auth: { tokens } };
    await using limited = await startGateway({ config: { gateway: { rpc } } });
    const client = createRpc(limited.url);
    const turnIds: unknown[] = [];
    for (const token of [SECRETS.consoleToken, "a-token-of-that-name"]) {
      const params = { ...hello, sessionId: "whose", idempotencyKey: "one" };
      const { result } = await client.call("agent.sendMessage", params, { token });
      turnIds.push(result.turnId);
      expect((await client.call("agent.list", {}, { token })).error?.data.name).toBe("rate-limited");
    }
    expect(new Set(turnIds).size).toBe(2);
  });
});
