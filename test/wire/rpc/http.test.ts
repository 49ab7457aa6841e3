import { describe, expect, test } from "vitest";
import { SECRETS, shareGateway, startGateway } from "#test/harness/gateway.ts";
import { exchange, openConnection, requestText } from "#test/harness/raw.ts";
import { createRpc, RPC } from "#test/harness/rpc.ts";

const gateway = await shareGateway({ config: { gateway: { trustedProxies: ["127.0.0.1"] } } });
const rpc = createRpc(gateway.url);
const LIST = JSON.stringify({ jsonrpc: "2.0", id: "a", method: "agent.list" });
const good = { authorization: `Bearer ${SECRETS.rpcToken}`, "content-type": "application/json" };
let addresses = 0;
function elsewhere() {
  return { "x-forwarded-for": `198.51.100.${++addresses}`, "x-forwarded-proto": "https" };
}

describe("POST /rpc", () => {
  test.each(["GET", "HEAD", "PUT", "PATCH", "DELETE", "OPTIONS"])("is not %s: 405 with Allow", async (method) => {
    const reply = await exchange(gateway.url, { method, path: "/rpc" }, good);
    expect([reply.status, reply.headers.get("allow")]).toEqual([405, "POST"]);
    if (method !== "HEAD") expect(reply.json).toMatchObject({ error: { code: -32600 }, id: null });
  });

  test.each(["/rpc/", "/rpc/agent.list"])("is only at this path, not at %s", async (path) => {
    const reply = await exchange(gateway.url, { method: "POST", path }, good, LIST);
    expect(reply.status).toBe(404);
    expect(JSON.parse(reply.text)).toMatchObject({ error: { code: -32002, data: { name: "not-found" } }, id: null });
  });

  test("ignores the query", async () => {
    expect((await exchange(gateway.url, { ...RPC, path: "/rpc?x=1" }, good, LIST)).status).toBe(200);
  });

  test("refuses a body without a type, and a compressed one", async () => {
    const { authorization } = good;
    expect((await exchange(gateway.url, RPC, { authorization }, LIST)).status).toBe(415);
    expect((await rpc.send(LIST, { headers: { "content-encoding": "gzip" } })).status).toBe(415);
  });

  test("refuses a page of another site, a long address and a missing host with RPC errors", async () => {
    const foreign = await rpc.send(LIST, { headers: { origin: "https://pages.example" } });
    expect([foreign.status, foreign.error]).toEqual([403, "origin-not-allowed"]);
    const rebound = await rpc.send(LIST, { headers: { host: "rebound.example" } });
    expect([rebound.status, rebound.error]).toEqual([403, "origin-not-allowed"]);
    const long = await exchange(gateway.url, { ...RPC, path: `/rpc?${"a".repeat(9_000)}` }, good, LIST);
    expect([long.status, long.error]).toEqual([414, "uri-too-long"]);
  });

  test("waits for a body only for a limited time", async () => {
    await using impatient = await startGateway({ requestMs: 50 });
    const reply = await exchange(impatient.url, RPC, { ...good, "content-length": "100" }, "{");
    expect([reply.status, reply.error]).toEqual([408, "request-timeout"]);
  });

  test("names the address of RPC as the caller reached it", async () => {
    const call = { jsonrpc: "2.0", id: 1, method: "rpc.discover" };
    const headers = { host: "localhost:8080" };
    const { json } = await rpc.send(call, { headers });
    expect(json.result).toMatchObject({ servers: [{ url: "http://localhost:8080/rpc" }] });
    const served = await exchange(gateway.url, { method: "GET", path: "/openrpc.json" }, headers);
    expect(json.result).toEqual(served.json);
  });
});

describe("a caller without a valid token", () => {
  const idFor = async (body: string | Buffer, headers: Record<string, string> = {}) => {
    const reply = await exchange(gateway.url, RPC, { ...elsewhere(), ...headers }, body);
    expect(reply.status).toBe(401);
    return reply.json.id;
  };
  const padded = (length: number) => {
    const start = '{"jsonrpc":"2.0","id":7,"method":"';
    return `${start}${"x".repeat(length - start.length - 2)}"}`;
  };

  test("gets the id of a body of up to 4 KiB", async () => {
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

  test("is not asked for a waiting body, and is read up to 4 KiB", async () => {
    await using connection = await openConnection(gateway.url);
    connection.write(requestText(RPC, { ...elsewhere(), expect: "100-continue", "content-length": "20" }));
    const reply = await connection.reply(RPC);
    expect([reply.status, reply.json.id, connection.interim()]).toEqual([401, null, 0]);
    const headers = { ...elsewhere(), "content-length": String(10 ** 9) };
    const large = await exchange(gateway.url, RPC, headers, "x".repeat(100));
    expect([large.status, large.headers.get("connection")]).toEqual([401, "close"]);
  });

  test("gets no other information: not about the type, the size or the method", async () => {
    const call = { jsonrpc: "2.0", id: 1, method: "nothing" };
    const headers = { ...elsewhere(), "content-type": "text/plain" };
    expect((await rpc.send(call, { token: null, headers })).status).toBe(401);
  });

  test("over clear text from another machine also gets -32000, with 403", async () => {
    const headers = { "x-forwarded-for": "203.0.113.7", "x-forwarded-proto": "http" };
    const reply = await rpc.send(LIST, { headers });
    expect([reply.status, reply.headers.get("www-authenticate")]).toEqual([403, null]);
    expect(reply.json).toMatchObject({ error: { code: -32000, data: { name: "tls-required" } }, id: "a" });
  });
});

describe("RPC", () => {
  test("is 404 if it is off, and the start log says so", async () => {
    await using off = await startGateway({ config: { gateway: { rpc: { enabled: false } } } });
    for (const path of ["/rpc", "/rpc/ws"]) {
      const reply = await exchange(off.url, { method: "POST", path }, good, LIST);
      expect([reply.status, reply.error]).toEqual([404, "not-found"]);
    }
    expect(off.linesOf("surface.off", { surface: "rpc" })).toHaveLength(1);
  });

  test("is closed and opened by a reload", async () => {
    await using turned = await startGateway();
    const client = createRpc(turned.url);
    await turned.reload({ gateway: { rpc: { enabled: false } } });
    expect((await client.send(LIST)).status).toBe(404);
    await turned.reload({});
    expect((await client.send(LIST)).status).toBe(200);
  });
});
