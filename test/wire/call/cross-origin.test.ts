import { describe, expect, test } from "vitest";
import { SECRETS, shareGateway, startGateway } from "#test/harness/gateway.ts";
import { openHttp2 } from "#test/harness/http2.ts";
import { noteChecked } from "#test/harness/ledger.ts";
import { exchange, openConnection, requestText } from "#test/harness/raw.ts";

const PAGE = "https://chat.example";
const config = { gateway: { allowedOrigins: [PAGE, "app://chat"], openai: { enabled: true } } };
const gateway = await shareGateway({ config });
const http2 = await openHttp2(gateway.url);

const authorization = `Bearer ${SECRETS.key}`;
const CHAT = { method: "POST", path: "/api/v1/chat/send" };
const COMPLETIONS = { method: "POST", path: "/v1/chat/completions" };
const RPC = { method: "POST", path: "/rpc" };
const SKILLS = { method: "GET", path: "/api/v1/skills/list" };
const json = { authorization, "content-type": "application/json" };
const toRpc = { ...json, authorization: `Bearer ${SECRETS.rpcToken}` };
const said = JSON.stringify({ message: "hi" });
const asked = JSON.stringify({ model: "main", messages: [{ role: "user", content: "hi" }] });
const listed = JSON.stringify({ jsonrpc: "2.0", id: 1, method: "agent.list", params: {} });

function shownTo(headers: Headers) {
  return {
    origin: headers.get("access-control-allow-origin"),
    vary: headers.get("vary")?.match(/Origin/)?.[0] ?? null,
  };
}
const toPage = { origin: PAGE, vary: "Origin" };
const toNobody = { origin: null, vary: null };

async function preflight(path: string, headers: Record<string, string> = {}, url = gateway.url) {
  const asking = { origin: PAGE, "access-control-request-method": "POST", ...headers };
  const response = await fetch(url + path, { method: "OPTIONS", headers: asking });
  noteChecked(response.headers.get("x-request-id") ?? "");
  return { status: response.status, headers: response.headers, text: await response.text() };
}

type Sent = [string, typeof CHAT, Record<string, string>, string | undefined, number];
const REPLIES: Sent[] = [
  ["a reply", CHAT, json, said, 200],
  ["a reply of the door for OpenAI's clients", COMPLETIONS, json, asked, 200],
  ["an answer of RPC", RPC, toRpc, listed, 200],
  ["a list", SKILLS, { authorization }, undefined, 200],
  ["that a token is unknown", CHAT, { ...json, authorization: "Bearer nobody" }, said, 401],
  ["that a token is unknown, as OpenAI does", COMPLETIONS, { ...json, authorization: "Bearer nobody" }, asked, 401],
  ["that a token is unknown, as RPC does", RPC, { "content-type": "application/json" }, listed, 401],
  ["that a body is wrong", CHAT, json, "{}", 400],
  ["that a method is not allowed", { method: "PATCH", path: CHAT.path }, json, said, 405],
  ["that nothing is there", { method: "GET", path: "/nowhere" }, { authorization }, undefined, 404],
  ["that the Host is not ours", SKILLS, { authorization, host: "rebound.example" }, undefined, 403],
  ["whether we live", { method: "GET", path: "/healthz" }, {}, undefined, 200],
  ["the contract", { method: "GET", path: "/openapi.json" }, {}, undefined, 200],
];

describe("a page of an origin in gateway.allowedOrigins", () => {
  test.each(REPLIES)("can read %s", async (_, place, headers, body, status) => {
    const reply = await exchange(gateway.url, place, { ...headers, origin: PAGE }, body);
    expect([reply.status, shownTo(reply.headers)]).toEqual([status, toPage]);
  });

  test("can read a stream", async () => {
    await using connection = await openConnection(gateway.url);
    const body = JSON.stringify({ message: "hi", stream: true });
    connection.write(requestText(CHAT, { ...json, origin: PAGE }, body));
    const headers = await connection.head(CHAT);
    expect([headers.get("content-type"), shownTo(headers)]).toEqual(["text/event-stream", toPage]);
    await connection.until((text) => text.includes("turn.completed"));
    const { status, headers: head, text } = await http2.exchange(CHAT, { ...json, origin: PAGE }, body);
    noteChecked(head.get("x-request-id") ?? "");
    expect([status, shownTo(head)]).toEqual([200, toPage]);
    expect(text).toContain("turn.completed");
  });

  test("can read the gateway's headers that it needs, and sends no cookies", async () => {
    const { headers } = await exchange(gateway.url, CHAT, { ...json, origin: PAGE }, said);
    const exposed = headers.get("access-control-expose-headers")?.toLowerCase().split(", ");
    expect(exposed).toEqual(
      expect.arrayContaining(["retry-after", "ratelimit", "idempotent-replayed", "www-authenticate", "x-request-id"]),
    );
    expect(headers.has("access-control-allow-credentials")).toBe(false);
  });

  test("may be an app's", async () => {
    const { status, headers } = await exchange(gateway.url, CHAT, { ...json, origin: "app://chat" }, said);
    expect([status, headers.get("access-control-allow-origin")]).toEqual([200, "app://chat"]);
  });

  test.each([CHAT.path, COMPLETIONS.path, "/rpc", "/api/v1/keys/key_1", "/nowhere", "/healthz"])(
    "gets the list of what it may send to %s, without a token",
    async (path) => {
      const { status, headers, text } = await preflight(path, {
        "access-control-request-headers": "authorization,content-type,x-stainless-lang",
      });
      expect([status, text, headers.get("access-control-allow-origin")]).toEqual([204, "", PAGE]);
      expect(headers.get("access-control-allow-methods")?.split(", ")).toEqual(["GET", "POST", "DELETE"]);
      expect(headers.get("access-control-allow-headers")).toBe("authorization,content-type,x-stainless-lang");
      expect(headers.get("access-control-max-age")).toBe("7200");
      expect(headers.get("vary")).toMatch(/^Origin, Access-Control-Request-Headers\b/);
    },
  );

  test("gets the list of the usual headers if it asks for none that is allowed", async () => {
    const { headers } = await preflight(CHAT.path, { "access-control-request-headers": "a b; c" });
    expect(headers.get("access-control-allow-headers")).toContain("Idempotency-Key, Last-Event-ID");
  });

  test("may come from the internet to a machine in a private network", async () => {
    const local = "access-control-request-private-network";
    expect((await preflight(CHAT.path, { [local]: "true" })).headers.get("access-control-allow-private-network")).toBe(
      "true",
    );
    expect((await preflight(CHAT.path)).headers.has("access-control-allow-private-network")).toBe(false);
  });

  test("leaves a log line of its preflight", async () => {
    const { headers } = await preflight(CHAT.path);
    const requestId = headers.get("x-request-id");
    await gateway.until(() => gateway.linesOf("request", { requestId, operation: "preflight", status: 204 })[0]);
  });

  test("cannot reach webhooks, because their senders are servers", async () => {
    const { status, headers } = await preflight("/hooks/wake");
    expect([status, shownTo(headers)]).toEqual([405, toNobody]);
    const wake = await gateway.hooks.wake({ text: "hi" }, { headers: { origin: PAGE } });
    expect([wake.status, shownTo(wake.headers)]).toEqual([200, toNobody]);
  });

  test("is allowed from the reload that names it until the one that removes it", async () => {
    await using other = await startGateway();
    expect((await preflight(CHAT.path, {}, other.url)).status).toBe(403);
    await other.reload(config);
    expect((await preflight(CHAT.path, {}, other.url)).status).toBe(204);
    await other.reload({});
    expect((await preflight(CHAT.path, {}, other.url)).status).toBe(403);
  });
});

describe("no CORS headers are sent to", () => {
  test.each(["https://other.example", "null", "http://chat.example", "https://chat.example.org"])(
    "a page of %s, which is refused",
    async (origin) => {
      const reply = await exchange(gateway.url, CHAT, { ...json, origin }, said);
      expect([reply.status, reply.error, shownTo(reply.headers)]).toEqual([403, "origin-not-allowed", toNobody]);
      const { status, headers } = await preflight(CHAT.path, { origin });
      expect([status, shownTo(headers)]).toEqual([403, toNobody]);
    },
  );

  test("our own page or a client that is not a page, which do not need them", async () => {
    const ours: Record<string, string> = { origin: gateway.url, host: gateway.url.slice("http://".length) };
    for (const origin of [ours, {}]) {
      const { status, headers } = await exchange(gateway.url, CHAT, { ...json, ...origin }, said);
      expect([status, shownTo(headers)]).toEqual([200, toNobody]);
    }
  });

  test("an OPTIONS request that is not from a page", async () => {
    const reply = await exchange(gateway.url, { method: "OPTIONS", path: CHAT.path }, { authorization, origin: PAGE });
    expect([reply.status, reply.headers.get("allow")]).toEqual([405, "POST"]);
  });
});
