import { describe, expect, test } from "vitest";
import { SECRETS, shareGateway, startGateway } from "#test/harness/gateway.ts";
import { noteChecked } from "#test/harness/ledger.ts";
import { call, fakeTools, LEGACY, MODERN, messageOf, OPEN, post } from "./clients.ts";

const gateway = await shareGateway({ config: { gateway: { ...OPEN, allowedOrigins: ["https://app.example.com"] } } });
const { url } = gateway;

async function refusalOf(answer: Promise<Response>) {
  const res = await answer;
  const { error, id } = (await res.json()) as { id: unknown; error: { code: number; data?: { name: string } } };
  return { status: res.status, code: error.code, name: error.data?.name, id, headers: res.headers };
}
const list = messageOf("tools/list");

describe("a caller is refused", () => {
  test.each([
    ["without a key", null],
    ["with an unknown key", "not-a-key-of-this-gateway"],
    ["with a token of RPC", SECRETS.rpcToken],
  ])("%s, with the scheme of authentication", async (_, key) => {
    const refusal = await refusalOf(post(url, list, { key }));
    expect(refusal).toMatchObject({ status: 401, code: -32000, name: "unauthenticated", id: null });
    expect(refusal.headers.get("www-authenticate")).toBe('Bearer realm="agent-gateway"');
  });

  test("whose page is from a foreign origin", async () => {
    const refusal = await refusalOf(post(url, list, { headers: { origin: "https://evil.example.com" } }));
    expect(refusal).toMatchObject({ status: 403, code: -32001, name: "origin-not-allowed" });
  });

  test("above the rate limit of its key, with the time to wait", async () => {
    const limits = { rateLimit: { maxRequests: 1, windowMs: 60_000 } };
    const keys = [{ name: "slow", key: SECRETS.key, ...limits }];
    await using limited = await startGateway({ config: { gateway: { ...OPEN, rest: { auth: { keys } } } } });
    expect((await call(limited.url, "tools/list")).status).toBe(200);
    const refusal = await refusalOf(post(limited.url, list));
    expect(refusal).toMatchObject({ status: 429, code: -32004, name: "rate-limited" });
    expect(Number(refusal.headers.get("retry-after"))).toBeGreaterThan(0);
    // REST counts the same requests.
    expect(await limited.rest.call("skills.list")).toMatchObject({ status: 429 });
  });
});

describe("a page of an allowed origin", () => {
  const origin = "https://app.example.com";

  test("may send the headers of the protocol", async () => {
    const wanted = "authorization,content-type,mcp-protocol-version,mcp-method,mcp-name";
    const res = await fetch(`${url}/mcp`, {
      method: "OPTIONS",
      headers: { origin, "access-control-request-method": "POST", "access-control-request-headers": wanted },
    });
    expect(res.status).toBe(204);
    expect(res.headers.get("access-control-allow-headers")).toBe(wanted);
    noteChecked(res.headers.get("x-request-id") ?? "");
  });

  test("reads the answer", async () => {
    const { status, headers } = await call(url, "tools/list", {}, { headers: { origin } });
    expect(status).toBe(200);
    expect(headers.get("access-control-allow-origin")).toBe(origin);
  });
});

describe("a request is refused", () => {
  test.each(["GET", "DELETE", "PUT"])("with the method %s", async (httpMethod) => {
    const res = await fetch(`${url}/mcp`, { method: httpMethod, headers: { authorization: `Bearer ${SECRETS.key}` } });
    expect(res.status).toBe(405);
    expect(res.headers.get("allow")).toBe("POST");
    expect(await res.json()).toMatchObject({ jsonrpc: "2.0", error: { code: -32600 }, id: null });
  });

  test.each([
    ["that is empty", "", 400, -32700],
    ["that is not JSON", "{", 400, -32700],
    ["that is a batch", JSON.stringify([list]), 400, -32600],
    ["that is text", '"tools/list"', 400, -32600],
    ["that is null", "null", 400, -32600],
    ["that is not a message", '{"hello":1}', 400, -32600],
    ["of another version of JSON-RPC", '{"jsonrpc":"1.0","id":1,"method":"tools/list"}', 400, -32600],
    ["that is deeply nested", `{"a":${"[".repeat(5_000)}${"]".repeat(5_000)}}`, 400, -32600],
  ])("with a body %s", async (_, body, status, code) => {
    for (const revision of [MODERN, LEGACY] as const)
      expect(await refusalOf(post(url, body, { revision }))).toMatchObject({ status, code });
  });

  test("with a body above the limit", async () => {
    const body = messageOf("tools/call", { name: "ask_main", arguments: { message: "x".repeat(1024 ** 2) } });
    expect(await refusalOf(post(url, body))).toMatchObject({ status: 413, name: "too-large" });
  });

  test.each(["text/plain", "application/x-www-form-urlencoded", null])("with the content type %s", async (type) => {
    const refusal = await refusalOf(post(url, list, { headers: { "content-type": type } }));
    expect(refusal).toMatchObject({ status: 415, name: "unsupported-media-type" });
  });

  test("of an earlier revision whose client takes no stream", async () => {
    const sent = { revision: LEGACY, headers: { accept: "application/json" } } as const;
    expect((await post(url, messageOf("tools/list", {}, sent), sent)).status).toBe(406);
  });

  test.each([
    ["the method", { "mcp-method": "tools/call" }],
    ["the revision", { "mcp-protocol-version": LEGACY }],
    ["no method", { "mcp-method": null }],
  ])("whose headers have another value than its body: %s", async (_, headers) => {
    expect(await refusalOf(post(url, list, { headers }))).toMatchObject({ status: 400, code: -32020, id: 7 });
  });

  test("whose header names another tool than its body", async () => {
    const body = messageOf("tools/call", { name: "ask_main", arguments: { message: "hi" } });
    const refusal = await refusalOf(post(url, body, { headers: { "mcp-name": "turn_get" } }));
    expect(refusal).toMatchObject({ status: 400, code: -32020 });
  });

  test("with a revision that is not served, and the answer has those that are", async () => {
    const body = messageOf("tools/list");
    const meta = body.params as { _meta: Record<string, unknown> };
    meta._meta["io.modelcontextprotocol/protocolVersion"] = "2099-01-01";
    const res = await post(url, body, { headers: { "mcp-protocol-version": "2099-01-01" } });
    expect(res.status).toBe(400);
    expect(await res.json()).toMatchObject({ error: { code: -32022, data: { supported: [MODERN] } } });
  });

  test("with an unknown method", async () => {
    expect(await call(url, "prompts/list")).toMatchObject({ status: 404, json: { error: { code: -32601 }, id: 7 } });
    expect(await call(url, "tasks/get", { taskId: "x" }, { revision: LEGACY })).toMatchObject({
      json: { error: { code: -32601 } },
    });
  });

  test.each([MODERN, LEGACY] as const)("of %s with an id that is longer than 256 characters", async (revision) => {
    const sent = { revision };
    const withId = (id: string) => post(url, { ...messageOf("tools/list", {}, sent), id }, sent);
    expect((await withId("x".repeat(256))).status).toBe(200);
    expect(await refusalOf(withId("x".repeat(257)))).toMatchObject({ status: 400, code: -32600, id: null });
  });

  test("below the path", async () => {
    const { status, error } = await gateway.rest.send("POST", "/mcp/other", { body: {} });
    expect([status, error]).toEqual([404, "not-found"]);
  });
});

describe("the log and the flight recorder", () => {
  test("have one line for a request, with a bounded number of operations", async () => {
    await using own = await startGateway({ config: { gateway: OPEN } });
    await call(own.url, "tools/list");
    await call(own.url, "tools/call", { name: "ask_main", arguments: { message: "hi" } });
    await call(own.url, "tools/call", { name: "turn_get", arguments: { turn_id: "turn_01M7YN0XEMM1B7E5S8YF3GKP2N" } });
    await call(own.url, "tools/call", { name: "made-up-by-a-caller" });
    await call(own.url, "made/up");
    const lines = own
      .linesOf("request")
      .map(({ operation, status, error, caller }) => [operation, status, error, caller]);
    expect(lines).toEqual([
      ["mcp.tools/list", 200, undefined, "tests"],
      ["mcp.tools/call", 200, undefined, "tests"],
      ["mcp.turn_get", 200, "turn-not-found", "tests"],
      ["mcp.tools/call", 200, "invalid-params", "tests"],
      ["mcp", 404, "method-not-found", "tests"],
    ]);
    expect(own.linesOf("request")[1]?.turnId).toMatch(/^turn_/);
  });

  test.each([MODERN, LEGACY] as const)("have the errors of the protocol of %s", async (revision) => {
    await using own = await startGateway({ config: { gateway: OPEN } });
    for (const [method, params] of [
      ["made/up", {}],
      ["tools/call", { name: 5 }],
      ["resources/read", { uri: "skill://nobody/SKILL.md" }],
    ] as const) {
      const uri = "uri" in params ? params.uri : null;
      const name = "name" in params ? String(params.name) : uri;
      const { json } = await call(own.url, method, params, { revision, headers: { "mcp-name": name } });
      expect(json.error).toBeDefined();
    }
    const errors = own.linesOf("request").map(({ operation, error }) => [operation, error]);
    expect(errors).toEqual([
      ["mcp", "method-not-found"],
      ["mcp.tools/call", "invalid-params"],
      ["mcp.resources/read", "method-not-found"],
    ]);
  });

  test("have calls that start work, and refusals", async () => {
    await using own = await startGateway({ config: { gateway: OPEN } });
    await call(own.url, "tools/call", { name: "ask_main", arguments: { message: "hi" } });
    await call(own.url, "tools/call", { name: "nobody" });
    await post(own.url, list, { key: null });
    const { json } = await own.console.call("deliveries.list");
    expect(json.deliveries).toMatchObject([
      { surface: "rest", operation: "mcp", path: "/mcp", outcome: "refused", status: 401 },
      { surface: "rest", operation: "mcp.tools/call", path: "/mcp", outcome: "refused" },
      { surface: "rest", operation: "mcp.tools/call", path: "/mcp", outcome: "completed" },
    ]);
  });

  test("have an unexpected error whole, and its answer does not", async () => {
    const mcpTools = fakeTools({ call: () => Promise.reject(new Error("the secret cause")) });
    await using own = await startGateway({ config: { gateway: OPEN }, mcpTools });
    const { json } = await call(own.url, "tools/call", { name: "look" });
    expect(json.error).toMatchObject({ code: -32603, data: { name: "internal", status: 500 } });
    expect(JSON.stringify(json)).not.toContain("secret cause");
    expect(JSON.stringify(own.logs)).toContain("secret cause");
  });
});
