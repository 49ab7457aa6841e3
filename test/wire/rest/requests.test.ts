import { describe, expect, test } from "vitest";
import { restRoutes } from "#test/harness/contract.ts";
import { SECRETS, shareGateway } from "#test/harness/gateway.ts";
import { exchange, openConnection, requestText } from "#test/harness/raw.ts";
import { targetOf } from "#test/harness/rest.ts";

const gateway = await shareGateway();
const CHAT = { method: "POST", path: "/api/v1/chat/send" };
const authorization = `Bearer ${SECRETS.key}`;
const json = { authorization, "content-type": "application/json" };

describe("a request that does not match the contract", () => {
  test.each([
    ["a field too many", { message: "hi", massage: "hi" }, ["/massage is unknown (did you mean message?)"]],
    ["a field missing", {}, ["/message is required"]],
    ["a wrong type", { message: 1 }, ["/message must be a string"]],
    ["a null", { message: null }, ["/message must be a string"]],
    ["a text for a boolean", { message: "hi", stream: "true" }, ["/stream must be a boolean"]],
    ["an empty message", { message: "" }, ["/message must have at least 1 character"]],
    ["a wrong entry of a list", { message: "hi", skill_ids: ["a", 2] }, ["/skill_ids/1 must be a string"]],
    [
      "a list that is too long",
      { message: "hi", skill_ids: Array(65).fill("a") },
      ["/skill_ids must have at most 64 entries"],
    ],
    [
      "an id of another form",
      { message: "hi", session_id: "é" },
      ["/session_id must be of printable ASCII characters, without a space at either end"],
    ],
    [
      "several faults",
      { stream: 1, surprise: 2 },
      [
        "/message is required",
        /^\/surprise is unknown \(there are message, stream, skill_ids, .*\)$/,
        "/stream must be a boolean",
      ],
    ],
    ["a list", [], [" must be an object"]],
    ["a null body", null, [" must be an object"]],
    ["a number", 7, [" must be an object"]],
    ["a text", '"hi"', [" must be an object"]],
    [
      "a key of Object's own",
      JSON.parse('{"message":"hi","__proto__":{"a":1}}'),
      [/^\/__proto__ is unknown \(there are /],
    ],
    ["a constructor", { message: "hi", constructor: { prototype: {} } }, [/^\/constructor is unknown \(there are /]],
  ])("is 400, with the name of the fault: %s", async (_, body, faults) => {
    const reply = await gateway.rest.call("chat.send", { body });
    expect(reply.error).toBe("invalid-request");
    const found = reply.problem.errors?.map(({ pointer, message }) => `${pointer} ${message}`) ?? [];
    expect(found).toHaveLength(faults.length);
    for (const fault of faults)
      expect(found).toContainEqual(fault instanceof RegExp ? expect.stringMatching(fault) : fault);
  });

  test.each(["mesage", "text"])("with `%s` gets the name of the missing field", async (field) => {
    const { problem } = await gateway.rest.call("chat.send", { body: { [field]: "hi" } });
    expect(problem.detail).toBe(`message is required. You sent \`${field}\`. Did you mean \`message\`?`);
  });

  test.each([
    ["unknown", "?page=2", "query:page is unknown (there are limit, cursor)"],
    ["no number", "?limit=ten", "query:limit must be an integer"],
    ["too large", "?limit=501", "query:limit must be at most 500"],
    ["given twice", "?limit=1&limit=2", "query:limit must be an integer"],
    ["of Object's own", "?__proto__[polluted]=1", "query:__proto__ is unknown (there are limit, cursor)"],
    ["nested", "?limit[a]=1", "query:limit must be an integer"],
  ])("is 400 for a query parameter that is %s", async (_, query, fault) => {
    const reply = await gateway.console.send("GET", `/api/v1/keys${query}`);
    expect(reply.error).toBe("invalid-request");
    expect(reply.problem.errors?.map(({ pointer, message }) => `${pointer} ${message}`)).toContain(fault);
    expect(({} as { polluted?: unknown }).polluted).toBeUndefined();
  });

  test.each([
    ["turns.list", "cursor", "nonsense"],
    ["events.list", "cursor", "nonsense"],
    ["deliveries.list", "cursor", "nonsense"],
    ["deliveries.list", "from", "2026-13-45T99:99:99.999Z"],
    ["deliveries.list", "to", "2026-02-30T25:00:00.000Z"],
    ["deliveries.list", "limit", "0"],
  ] as const)("is 400 for a list: %s with %s=%s", async (operation, name, value) => {
    const { error, problem } = await gateway.console.call(operation, { query: { [name]: value } });
    expect([error, problem.errors?.[0]?.pointer]).toEqual(["invalid-request", `query:${name}`]);
  });

  test("gets a description of the form of a time", async () => {
    const reply = await gateway.console.send("GET", "/api/v1/deliveries?from=yesterday");
    expect(reply.problem.detail).toBe("query:from must be a time in UTC, written as 2026-11-21T00:00:00.000Z.");
  });

  test("gets at most a hundred faults, with long names cut", async () => {
    const body = Object.fromEntries(Array.from({ length: 500 }, (_, n) => [`${n}${"x".repeat(1_000)}`, n]));
    const reply = await gateway.rest.call("chat.send", { body });
    expect(reply.problem.errors).toHaveLength(100);
    expect(reply.text.length).toBeLessThan(20_000);
  });

  test.each([
    ["GET", "/api/v1/skills/list", "{}"],
    ["POST", "/api/v1/turns/x/cancel", '{"reason":"late"}'],
    ["POST", "/api/v1/turns/x/cancel", "[]"],
    ["POST", "/api/v1/turns/x/cancel", `{${" ".repeat(100)}}`],
    ["DELETE", "/api/v1/keys/x", "{}"],
  ])("is 400 for a body that %s %s does not accept: %s", async (method, path, body) => {
    const headers = { authorization: `Bearer ${SECRETS.consoleToken}` };
    const reply = await exchange(gateway.url, { method, path }, headers, body);
    expect([reply.error, reply.problem.detail]).toEqual(["invalid-request", "This call does not take a body."]);
  });

  test.each(["", "{}", "{ }\r\n"])("may have an empty object if a POST takes no body: %j", async (body) => {
    const place = { method: "POST", path: "/api/v1/turns/turn_01M7YN0XEMM1B7E5S8YF3GKP2N/cancel" };
    const headers = { authorization, "content-type": "application/json" };
    expect(await exchange(gateway.url, place, headers, body)).toMatchObject({ error: "turn-not-found" });
  });

  test.each(["%", "%zz", "%ff", "%c0%80"])("is 400 for a path that is not percent-encoded UTF-8: %s", async (id) => {
    const reply = await exchange(gateway.url, { method: "GET", path: `/api/v1/turns/${id}` }, { authorization });
    expect(reply.problem.errors?.[0]?.pointer).toBe("path:turn_id");
  });
});

describe("a path", () => {
  test.each([
    "/api",
    "/api/v1",
    "/api/v1/",
    "/api/v1/chat",
    "/api/v1/chat/send/",
    "/API/V1/keys",
    "/api/v1/keys/a/b",
    "/api/v1//keys",
    "/api/v1/turns//events",
    "/api/v1/turns/../keys",
    "/hook/wake",
    "/favicon.ico",
    "*",
  ])("that is not in the contract is 404: %s", async (path) => {
    const reply = await exchange(gateway.url, { method: "GET", path }, { authorization });
    expect(reply.error).toBe("not-found");
  });

  test("below /api/v1 reveals nothing to unauthenticated callers", async () => {
    for (const path of ["/api/v1/nothing", "/api/v1/keys", "/api/v1/chat/send"])
      expect((await gateway.rest.send("GET", path, { key: null })).error).toBe("unauthenticated");
  });

  test.each(["a%2Fb", "a%00b", "..%2F..%2Fetc", "%E4%BD%A0", "__proto__", "constructor", "x".repeat(2_000)])(
    "may have any id, which is then not found: %s",
    async (id) => {
      const reply = await exchange(gateway.url, { method: "GET", path: `/api/v1/turns/${id}` }, { authorization });
      expect(reply.error).toBe("turn-not-found");
    },
  );

  test.each([
    ["GET", "/api/v1/skills/list", 200],
    ["GET", "/healthz", 200],
    ["GET", "/openapi.json?a=b", 200],
    ["GET", "/rpc", 405],
    ["GET", "/rpc/ws", 426],
    ["GET", "/nowhere", 404],
  ])("may be a complete address, as sent to a proxy: %s %s", async (method, path, status) => {
    await using connection = await openConnection(gateway.url);
    connection.write(requestText({ method, path: gateway.url + path }, { authorization }));
    expect((await connection.reply({ method, path })).status).toBe(status);
  });
});

describe.each(restRoutes)("$method $path", ({ path }) => {
  const here = targetOf(path, {
    path: {
      turn_id: "x",
      key_id: "x",
      delivery_id: "x",
      event_id: "x",
      notification_id: "x",
      agent_name: "x",
      schedule_name: "x",
      skill_id: "x",
      name: "x",
    },
  });
  const allowed = restRoutes.filter((route) => route.path === path).map(({ method }) => method);

  test.each(
    ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"].filter(
      (method) => !(allowed as string[]).includes(method),
    ),
  )("does not take %s, and says what it takes", async (method) => {
    const reply = await exchange(gateway.url, { method, path: here }, { authorization });
    expect([reply.status, reply.headers.get("allow")]).toEqual([405, allowed.join(", ")]);
  });
});

describe("the media type of a body", () => {
  test.each([
    "application/json",
    "application/json; charset=utf-8",
    'Application/JSON;charset="UTF-8"',
    "application/json;",
  ])("may be %s", async (type) => {
    const headers = { "content-type": type };
    expect((await gateway.rest.call("chat.send", { headers, body: { message: "hi" } })).status).toBe(200);
  });

  test.each([
    "text/plain",
    "application/jsonx",
    "application/json; charset=latin1",
    "application/json; version=2",
    "application/problem+json",
    "application/x-www-form-urlencoded",
    "multipart/form-data; boundary=x",
    "*/*",
    "json",
    ";",
  ])("may not be %s", async (type) => {
    const headers = { "content-type": type };
    expect((await gateway.rest.call("chat.send", { headers, body: '{"message":"hi"}' })).error).toBe(
      "unsupported-media-type",
    );
  });

  test("is required", async () => {
    expect((await exchange(gateway.url, CHAT, { authorization }, '{"message":"hi"}')).error).toBe(
      "unsupported-media-type",
    );
  });

  test.each(["gzip", "br", "gzip, identity"])("is refused with a Content-Encoding such as %s", async (encoding) => {
    const headers = { "content-encoding": encoding };
    expect((await gateway.rest.call("chat.send", { headers, body: '{"message":"hi"}' })).error).toBe(
      "unsupported-media-type",
    );
  });
});

describe("over the bare protocol", () => {
  test("a client that waits before it sends its body gets a 100 Continue", async () => {
    const body = '{"message":"hi"}';
    await using connection = await openConnection(gateway.url);
    const head = requestText(CHAT, { ...json, expect: "100-continue", "content-length": String(body.length) });
    connection.write(head);
    await connection.until((text) => text.startsWith("HTTP/1.1 100 Continue"));
    connection.write(body);
    expect((await connection.reply(CHAT)).json.reply).toBe("hi");
  });

  test.each([
    ["not with a bad key", { ...json, authorization: "Bearer wrong" }, "unauthenticated"],
    ["not for a body that is too large", { ...json, "content-length": "2000000" }, "too-large"],
    ["not for another media type", { ...json, "content-type": "text/plain" }, "unsupported-media-type"],
  ])("a client that waits before it sends its body gets the refusal at once, %s", async (_, headers, error) => {
    await using connection = await openConnection(gateway.url);
    connection.write(requestText(CHAT, { "content-length": "16", ...headers, expect: "100-continue" }));
    expect((await connection.reply(CHAT)).error).toBe(error);
    expect(connection.interim()).toBe(0);
  });

  test("an unknown expectation is ignored", async () => {
    const place = { method: "GET", path: "/api/v1/skills/list" };
    expect((await exchange(gateway.url, place, { authorization, expect: "tea" })).status).toBe(200);
  });

  test("a request without a Host is refused like any other", async () => {
    await using connection = await openConnection(gateway.url);
    connection.write(`GET /healthz HTTP/1.1\r\n\r\n`);
    expect((await connection.reply({ method: "GET", path: "/nowhere" })).error).toBe("invalid-request");
  });
});

describe("every reply", () => {
  test("has its own request id, as in the log", async () => {
    const replies = [
      await gateway.rest.send("GET", "/nowhere"),
      await gateway.rest.call("skills.list", { key: "wrong" }),
      await gateway.rest.call("chat.send", { body: "{" }),
      await gateway.rest.call("chat.send", { body: { message: "hi" } }),
      await gateway.console.call("keys.revoke", { path: { key_id: "x" } }),
    ];
    expect(new Set(replies.map(({ requestId }) => requestId)).size).toBe(replies.length);
    for (const { requestId, status, error } of replies) {
      const line = await gateway.logged("request", { requestId, status });
      expect(line.error).toBe(error);
    }
  });

  test("belongs to the trace of its caller", async () => {
    const traceId = "4bf92f3577b34da6a3ce929d0e0e4736";
    const headers = { traceparent: `00-${traceId}-00f067aa0ba902b7-01` };
    const { requestId } = await gateway.rest.call("skills.list", { headers });
    expect((await gateway.logged("request", { requestId })).traceId).toBe(traceId);
  });
});

test("nothing exists below a path that serves one resource", async () => {
  for (const path of ["/healthz", "/readyz", "/metrics", "/openapi.json", "/openrpc.json", "/rpc/ws"]) {
    for (const below of [`${path}/`, `${path}/anything`])
      expect([below, (await gateway.rest.send("GET", below, { key: gateway.rpcToken })).status]).toEqual([below, 404]);
  }
});
