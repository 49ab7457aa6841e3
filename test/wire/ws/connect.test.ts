import { describe, expect, test } from "vitest";
import { WebSocket } from "ws";
import { GatewayError, RpcClient } from "#generated/clients/typescript/src/rpc.ts";
import { shareGateway, startGateway } from "#test/harness/gateway.ts";
import { noteChecked } from "#test/harness/ledger.ts";
import { rpcErrorShape } from "#test/harness/shapes.ts";
import { type Upgrade, upgrade } from "./raw-socket.ts";
import { openSocket, socketUrl } from "./socket.ts";

const gateway = await shareGateway();
const { port } = new URL(gateway.url);
const bearer = { authorization: `Bearer ${gateway.rpcToken}` };
function inProtocol(token: string) {
  return `bearer.${Buffer.from(token).toString("base64url")}`;
}

/** Requests an upgrade that must be refused, with an error of RPC. */
async function refused(request: Upgrade, { url } = gateway) {
  const answer = await upgrade(url, request);
  answer.socket.destroy();
  noteChecked(answer.headers["x-request-id"] ?? "");
  if (answer.status === 101) return { ...answer, code: undefined, name: undefined };
  const { error, id } = JSON.parse(answer.body);
  expect(answer.headers["content-type"]).toBe("application/json");
  expect(answer.headers.connection).toBe("close");
  expect(id).toBeNull();
  expect(rpcErrorShape(error), JSON.stringify(rpcErrorShape.errors)).toBe(true);
  return { ...answer, code: error.code as number, name: error.data.name as string };
}

describe("a request to upgrade", () => {
  test("without a valid token is 401, like RPC, with id null; missing and wrong tokens get the same answer", async () => {
    const offers: Upgrade[] = [
      {},
      { headers: { authorization: "Bearer wrong" } },
      { headers: { "sec-websocket-protocol": "agent-gateway.v1" } },
      { headers: { "sec-websocket-protocol": `agent-gateway.v1, ${inProtocol("wrong")}` } },
      { headers: { "sec-websocket-protocol": "agent-gateway.v1, bearer." } },
      { path: `/rpc/ws?token=${gateway.rpcToken}` },
      { headers: { authorization: `Bearer ${gateway.key}` } },
    ];
    const bodies = new Set<string>();
    for (const offer of offers) {
      const { status, code, headers, body } = await refused(offer);
      expect({ status, code }).toEqual({ status: 401, code: -32000 });
      expect(headers["www-authenticate"]).toMatch(/^Bearer/);
      bodies.add(body.replace(/req_\w+/, ""));
    }
    expect(bodies.size).toBe(1);
    const { body } = await refused({ headers: { authorization: `Basic ${gateway.rpcToken}` } });
    expect(body).toContain("You sent the scheme `Basic`.");
  });

  test("with a wrong token is an error of the client, with its code and its request's id", async () => {
    const client = new RpcClient({ url: gateway.url, rpcToken: "wrong", WebSocket }).connect();
    const error: unknown = await client.agent.list().catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(GatewayError);
    const { requestId = "" } = error as GatewayError;
    noteChecked(requestId);
    expect(error).toMatchObject({ code: -32000, name: "unauthenticated", requestId: expect.stringMatching(/^req_/) });
    client.close();
  });

  test("gets a Retry-After after 20 wrong tokens a minute, and a valid token still passes", async () => {
    await using guarded = await startGateway();
    let last = await refused({}, guarded);
    for (let n = 0; n < 20; n++) {
      expect(last.headers["retry-after"]).toBeUndefined();
      last = await refused({}, guarded);
    }
    expect(last.status).toBe(401);
    expect(Number(last.headers["retry-after"])).toBeGreaterThan(0);
    await guarded.until(() => guarded.linesOf("request", { error: "unauthenticated" }).length === 21);
    expect(guarded.linesOf("auth.failed")).toHaveLength(20);
    (await openSocket(guarded)).ws.terminate();
  });

  test("may send its token as a subprotocol, and gets the other subprotocol back", async () => {
    const offered = `agent-gateway.v1, ${inProtocol(gateway.rpcToken)}`;
    const { status, headers, socket } = await upgrade(gateway.url, { headers: { "sec-websocket-protocol": offered } });
    expect(status).toBe(101);
    expect(headers["sec-websocket-protocol"]).toBe("agent-gateway.v1");
    expect(headers["sec-websocket-extensions"]).toBeUndefined();
    socket.destroy();
    const turned = `${inProtocol(gateway.rpcToken)},agent-gateway.v1`;
    const second = await upgrade(gateway.url, { headers: { "sec-websocket-protocol": turned } });
    expect(second.headers["sec-websocket-protocol"]).toBe("agent-gateway.v1");
    second.socket.destroy();
  });

  test("with a token in Authorization gets the subprotocol only on request, and never compression", async () => {
    const headers = { ...bearer, "sec-websocket-extensions": "permessage-deflate; client_max_window_bits" };
    const { status, headers: answer, socket } = await upgrade(gateway.url, { headers });
    expect(status).toBe(101);
    expect(answer["sec-websocket-protocol"]).toBeUndefined();
    expect(answer["sec-websocket-extensions"]).toBeUndefined();
    socket.destroy();
  });

  test("from another site's page, or with a name that is not this machine's, is 403 (F31)", async () => {
    const foreign: Record<string, string>[] = [
      { origin: "https://evil.example" },
      { origin: "null" },
      { origin: `https://127.0.0.1:${port}` },
      { origin: "http://127.0.0.1:1" },
      { host: `evil.example:${port}` },
      { host: `evil.example:${port}`, origin: `http://evil.example:${port}` },
    ];
    for (const headers of foreign) {
      const { status, code, name } = await refused({ headers: { ...bearer, ...headers } });
      expect({ status, code, name }, JSON.stringify(headers)).toEqual({
        status: 403,
        code: -32001,
        name: "origin-not-allowed",
      });
    }
    for (const own of [{ origin: gateway.url }, { host: `localhost:${port}`, origin: `http://localhost:${port}` }]) {
      expect((await refused({ headers: { ...bearer, ...own } })).status).toBe(101);
    }
  });

  test("from a page in gateway.allowedOrigins is accepted", async () => {
    await using open = await startGateway({ config: { gateway: { allowedOrigins: ["https://desk.example"] } } });
    const { status } = await refused({ headers: { ...bearer, origin: "https://desk.example" } }, open);
    expect(status).toBe(101);
    expect((await refused({ headers: { ...bearer, origin: "https://desk.example.org" } }, open)).status).toBe(403);
  });

  test("whose handshake is broken is 400", async () => {
    const broken: Upgrade[] = [
      { headers: { ...bearer, "sec-websocket-key": undefined } },
      { headers: { ...bearer, "sec-websocket-key": "short" } },
      { headers: { ...bearer, "sec-websocket-version": "7" } },
      { headers: { ...bearer, "sec-websocket-protocol": "a,,b" } },
      { headers: { ...bearer, host: undefined } },
      { headers: bearer, method: "POST" },
    ];
    for (const offer of broken) {
      const { status, code, headers } = await refused(offer);
      expect({ status, code }, JSON.stringify(offer)).toEqual({ status: 400, code: -32600 });
      expect(headers["sec-websocket-version"]).toBe("13");
    }
  });

  test("may have a complete address as its target, as sent to a proxy", async () => {
    for (const path of [`${gateway.url}/rpc/ws`, "HTTP://gateway.example/rpc/ws?a=b"]) {
      const { status, socket } = await upgrade(gateway.url, { path, headers: bearer });
      expect([path, status]).toEqual([path, 101]);
      socket.destroy();
    }
    expect((await refused({ path: `${gateway.url}/rpc/ws` })).status).toBe(401);
  });

  test("on another path is 404, and a plain request to the socket's path 426", async () => {
    for (const path of ["/", "/rpc", "/rpc/ws/more", "/api/v1/skills/list", "/rpc/wss"]) {
      const answer = await upgrade(gateway.url, { path, headers: bearer });
      noteChecked(answer.headers["x-request-id"] ?? "");
      expect(answer.status, path).toBe(404);
      expect(JSON.parse(answer.body).type).toBe("/docs/errors.html#not-found");
      answer.socket.destroy();
    }
    const plain = await fetch(`${gateway.url}/rpc/ws`, { headers: bearer });
    noteChecked(plain.headers.get("x-request-id") ?? "");
    expect(plain.status).toBe(426);
    expect(plain.headers.get("upgrade")).toBe("websocket");
    expect(await plain.json()).toMatchObject({ id: null, error: { code: -32600, data: { name: "upgrade-required" } } });
  });

  test("is 404 if gateway.rpc.enabled is false, also after a reload", async () => {
    await using closed = await startGateway({ config: { gateway: { rpc: { enabled: false } } } });
    const answer = await upgrade(closed.url, { headers: bearer });
    noteChecked(answer.headers["x-request-id"] ?? "");
    answer.socket.destroy();
    expect(answer.status).toBe(404);

    await using gone = await startGateway();
    using socket = await openSocket(gone);
    await gone.reload({ gateway: { rpc: { enabled: false } } });
    expect((await socket.closed).code).toBe(4401);
    const later = await upgrade(gone.url, { headers: bearer });
    noteChecked(later.headers["x-request-id"] ?? "");
    later.socket.destroy();
    expect(later.status).toBe(404);
  });

  test("above gateway.rpc.socketsPerAddress is refused with a time to return, which differs for each", async () => {
    await using small = await startGateway({ config: { gateway: { rpc: { socketsPerAddress: 2 } } } });
    using first = await openSocket(small);
    using _second = await openSocket(small);
    const moments = new Set<number>();
    for (let n = 0; n < 8; n++) {
      const { status, name, headers, body } = await refused({ headers: bearer }, small);
      expect({ status, name }).toEqual({ status: 503, name: "gateway-busy" });
      expect(headers["retry-after"]).toBeDefined();
      moments.add(JSON.parse(body).error.data.retryAfterMs);
    }
    expect(moments.size).toBeGreaterThan(1);
    first.ws.close();
    await first.closed;
    await small.logged("socket.closed", { by: "peer" });
    using _third = await openSocket(small);
  });

  test("is counted by its /64 over IPv6", async () => {
    const config = { gateway: { trustedProxies: ["127.0.0.1"], rpc: { socketsPerAddress: 1 } } };
    await using small = await startGateway({ config });
    const from = (address: string) => ({
      headers: { ...bearer, "x-forwarded-for": address, "x-forwarded-proto": "https" },
    });
    using first = await openSocket(small, from("2001:db8:0:1::1"));
    expect((await refused(from("2001:db8:0:1::2"), small)).name).toBe("gateway-busy");
    using _other = await openSocket(small, from("2001:db8:0:2::1"));
    first.ws.close();
    await small.logged("socket.closed", { by: "peer" });
    using _second = await openSocket(small, from("2001:db8:0:1::2"));
  });

  test("is logged with its caller when it is accepted and when it ends, and counted", async () => {
    await using told = await startGateway();
    using socket = await openSocket(told);
    expect(await told.logged("socket.opened")).toMatchObject({ caller: "ops", address: "127.0.0.1" });
    expect(await metric(told, "gateway_sockets_open")).toBe("1");
    socket.ws.close(1000);
    expect(await told.logged("socket.closed")).toMatchObject({ caller: "ops", by: "peer" });
    expect(await metric(told, "gateway_sockets_open")).toBe("0");
    expect(JSON.stringify(told.logs)).not.toContain(told.rpcToken);
  });

  test("refuses a token in clear text from another machine", async () => {
    await using proxied = await startGateway({ config: { gateway: { trustedProxies: ["127.0.0.1"] } } });
    const from = { ...bearer, "x-forwarded-for": "203.0.113.9" };
    const { status, code, name } = await refused({ headers: from }, proxied);
    expect({ status, code, name }).toEqual({ status: 403, code: -32000, name: "tls-required" });
    expect((await refused({ headers: { ...from, "x-forwarded-proto": "https" } }, proxied)).status).toBe(101);
  });
});

test("works over TLS", async () => {
  const tls = { cert: "test/config/tls/cert.pem", key: "test/config/tls/key.pem" };
  await using secure = await startGateway({
    config: { gateway: { listeners: [{ port: 0, tls, surfaces: ["rpc", "rest"] }] } },
  });
  using socket = await openSocket(secure, { rejectUnauthorized: false });
  expect(socketUrl(secure.url)).toMatch(/^wss:/);
  await socket.call("agent.sendMessage", { agentName: "main", message: "grüß dich \u{1f44b}", sessionId: "tls" });
  expect(await socket.pushed("turn.completed")).toMatchObject({ reply: "grüß dich \u{1f44b}" });
});

test("a client without a known subprotocol gets none selected", async () => {
  const ws = new WebSocket(socketUrl(gateway.url), ["other.v1"], { headers: bearer });
  const error = await new Promise<Error>((resolve) => ws.on("error", resolve));
  expect(error.message).toBe("Server sent no subprotocol");
});

async function metric({ url, rpcToken }: { url: string; rpcToken: string }, name: string) {
  const answer = await fetch(`${url}/metrics`, { headers: { authorization: `Bearer ${rpcToken}` } });
  noteChecked(answer.headers.get("x-request-id") ?? "");
  return new RegExp(`^${name} (\\S+)$`, "m").exec(await answer.text())?.[1];
}
