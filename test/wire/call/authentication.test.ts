import { describe, expect, test } from "vitest";
import { SECRETS, shareGateway, startGateway, type TestGateway } from "#test/harness/gateway.ts";
import { exchange, openConnection, requestText } from "#test/harness/raw.ts";
import type { Reply } from "#test/harness/rest.ts";

const PROXY = { gateway: { trustedProxies: ["127.0.0.1"] } };
const gateway = await shareGateway({ config: PROXY });
const LIST = { method: "GET", path: "/api/v1/skills/list" };
const authorization = `Bearer ${SECRETS.key}`;
let addresses = 0;
/** The headers of a request from an address of its own, so that no test uses up the patience for another. */
const elsewhere = (): Record<string, string> => ({
  "x-forwarded-for": `198.51.100.${++addresses}`,
  "x-forwarded-proto": "https",
});

/** A reply as its bytes are, but for what is new each time. */
const bareOf = ({ status, headers, text }: Reply) => ({
  status,
  headers: [...headers].filter(([name]) => name !== "x-request-id" && name !== "date"),
  text: text.replace(/req_[0-9A-Z]{26}/, "req"),
});

describe("a request without a good token", () => {
  test.each([
    ["a wrong token", "Bearer wrong"],
    ["another scheme", `Basic ${Buffer.from("user:password").toString("base64")}`],
    ["no scheme", SECRETS.key],
    ["nothing behind the scheme", "Bearer "],
    ["a token cut short", `Bearer ${SECRETS.key.slice(0, -1)}`],
    ["a token with more behind it", `Bearer ${SECRETS.key}x`],
    ["two tokens", `Bearer ${SECRETS.key} ${SECRETS.key}`],
    ["a token of the RPC surface", `Bearer ${SECRETS.rpcToken}`],
    ["the hash of a token", `Bearer sha256:${"0".repeat(64)}`],
    ["a huge token", `Bearer ${"x".repeat(15_000)}`],
  ])("looks like one without any, byte for byte: %s", async (_, wrong) => {
    const missing = await exchange(gateway.url, LIST, elsewhere());
    const refused = await exchange(gateway.url, LIST, { ...elsewhere(), authorization: wrong });
    expect(bareOf(refused)).toEqual(bareOf(missing));
    expect(refused.error).toBe("unauthenticated");
    expect(refused.headers.get("www-authenticate")).toBe('Bearer realm="agent-gateway"');
  });

  test.each(["bearer", "BEARER"])("is not one that writes %s", async (scheme) => {
    expect((await exchange(gateway.url, LIST, { authorization: `${scheme} ${SECRETS.key}` })).status).toBe(200);
  });

  test.each(["?access_token=", "?token=", "?key="])("is one that has it in the URL: %s", async (query) => {
    const place = { ...LIST, path: LIST.path + query + SECRETS.key };
    expect((await exchange(gateway.url, place, elsewhere())).error).toBe("unauthenticated");
  });

  test("leaves no token in the log", async () => {
    await exchange(gateway.url, LIST, { ...elsewhere(), authorization: "Bearer a-guess-of-somebody" });
    await gateway.logged("auth.failed", { address: `198.51.100.${addresses}` });
    expect(JSON.stringify(gateway.logs)).not.toMatch(/a-guess-of-somebody|of-the-tests/);
  });
});

describe("guessing from one address", () => {
  const guess = (at: TestGateway, from: Record<string, string>) =>
    exchange(at.url, LIST, { ...from, authorization: "Bearer guess" });

  test("is told to wait from the 21st failure on, and its connection is closed", async () => {
    const from = elsewhere();
    await using connection = await openConnection(gateway.url);
    for (let n = 1; n <= 20; n++) {
      connection.write(requestText(LIST, { ...from, authorization: `Bearer guess ${n}` }));
      const reply = await connection.reply(LIST);
      expect([reply.error, reply.headers.get("retry-after")]).toEqual(["unauthenticated", null]);
    }
    connection.write(requestText(LIST, from));
    const { error, headers } = await connection.reply(LIST);
    expect([error, headers.get("connection")]).toEqual(["unauthenticated", "close"]);
    expect(Number(headers.get("retry-after"))).toBeGreaterThan(50);
    expect(Number(headers.get("retry-after"))).toBeLessThanOrEqual(60);
    await connection.closed;
  });

  test("stops no good token from there, and nobody elsewhere", async () => {
    const from = elsewhere();
    for (let n = 0; n < 25; n++) await guess(gateway, from);
    expect((await exchange(gateway.url, LIST, { ...from, authorization })).status).toBe(200);
    expect((await guess(gateway, elsewhere())).headers.get("retry-after")).toBeNull();
  });

  test("is counted, and not logged one by one", async () => {
    const from = elsewhere();
    for (let n = 0; n < 40; n++) await guess(gateway, from);
    await gateway.rest.call("skills.list");
    expect(gateway.linesOf("auth.failed", { address: from["x-forwarded-for"] })).toHaveLength(20);
    const metrics = await gateway.rest.send("GET", "/metrics", { key: SECRETS.rpcToken });
    const counted = Number(/gateway_auth_failures_total\{surface="rest"\} (\d+)/.exec(metrics.text)?.[1]);
    expect(counted).toBeGreaterThan(gateway.linesOf("auth.failed").length);
  });
});

describe("a token in clear text", () => {
  const from = async (at: TestGateway, headers: Record<string, string>) =>
    (await exchange(at.url, LIST, { authorization, ...headers })).error;

  test.each([
    ["from another machine", { "x-forwarded-for": "203.0.113.7" }, "tls-required"],
    ["from another machine, by IPv6", { "x-forwarded-for": "2001:db8::7" }, "tls-required"],
    ["that a client says came from here", { "x-forwarded-for": "127.0.0.1, 203.0.113.7" }, "tls-required"],
    ["over a proxy that says http", { "x-forwarded-for": "203.0.113.7", "x-forwarded-proto": "http" }, "tls-required"],
    [
      "where only the client says https",
      { "x-forwarded-for": "203.0.113.7", "x-forwarded-proto": "https, http" },
      "tls-required",
    ],
    ["that a proxy took over TLS", { "x-forwarded-for": "203.0.113.7", "x-forwarded-proto": "https" }, undefined],
    ["from this machine", {}, undefined],
    ["from an address that is none", { "x-forwarded-for": "unknown" }, "tls-required"],
  ])("%s", async (_, headers, error) => {
    expect(await from(gateway, headers as Record<string, string>)).toBe(error);
  });

  test("is refused before it is looked at: good and bad alike", async () => {
    const headers = { "x-forwarded-for": "203.0.113.7" };
    const [good, bad] = await Promise.all([
      exchange(gateway.url, LIST, { ...headers, authorization }),
      exchange(gateway.url, LIST, { ...headers, authorization: "Bearer wrong" }),
    ]);
    expect(bareOf(good)).toEqual(bareOf(bad));
  });

  test("is taken from a network that the configuration names, and of a proxy that it does not name nothing is believed", async () => {
    const config = { gateway: { ...PROXY.gateway, clearTextFrom: ["203.0.113.0/24"] } };
    await using trusting = await startGateway({ config });
    expect(await from(trusting, { "x-forwarded-for": "203.0.113.7" })).toBeUndefined();
    expect(await from(trusting, { "x-forwarded-for": "203.0.114.7" })).toBe("tls-required");
    await using alone = await startGateway();
    expect(await from(alone, { "x-forwarded-for": "203.0.113.7" })).toBeUndefined();
  });
});

describe("a page of somebody else", () => {
  test.each([
    ["its Origin", { origin: "https://pages.example" }],
    ["an Origin that is none", { origin: "null" }],
    ["our Host with another scheme", { host: "localhost:1", origin: "https://localhost:1" }],
    ["our Host with another port", { host: "localhost:1", origin: "http://localhost:2" }],
    ["a name that points here", { host: "rebound.example" }],
    ["a name that points here, as its own origin", { host: "rebound.example", origin: "http://rebound.example" }],
    ["a name that begins like ours", { host: "localhost.rebound.example" }],
    ["no name", { host: "" }],
  ])("is refused by %s, with a good token too", async (_, headers) => {
    const reply = await exchange(gateway.url, LIST, { authorization, ...(headers as Record<string, string>) });
    expect(reply.error).toBe("origin-not-allowed");
  });

  test.each([
    { host: "localhost" },
    { host: "LOCALHOST:18789" },
    { host: "127.0.0.1:18789" },
    { host: "127.8.9.10" },
    { host: "[::1]:18789" },
    { host: "localhost:1", origin: "http://localhost:1" },
  ])("is not one of our own: %j", async (headers) => {
    expect((await exchange(gateway.url, LIST, { authorization, ...(headers as Record<string, string>) })).status).toBe(
      200,
    );
  });

  test("may be allowed by its origin, and then by its name as a Host", async () => {
    await using open = await startGateway({ config: { gateway: { allowedOrigins: ["https://console.example"] } } });
    const allowed = { authorization, host: "console.example", origin: "https://console.example" };
    expect((await exchange(open.url, LIST, allowed)).status).toBe(200);
    expect((await exchange(open.url, LIST, { ...allowed, origin: "https://other.example" })).error).toBe(
      "origin-not-allowed",
    );
  });

  test("may ask whether we live, and read the contract", async () => {
    const probe = (path: string) => exchange(gateway.url, { method: "GET", path }, { host: "probe.example" });
    expect((await probe("/healthz")).status).toBe(200);
    expect((await probe("/openapi.json")).status).toBe(200);
    expect((await probe("/openrpc.json")).status).toBe(200);
    // Whether it is ready is another question.
    expect((await probe("/readyz")).error).toBeUndefined();
  });
});

test("a stranger's body is not read: authentication comes first", async () => {
  await using connection = await openConnection(gateway.url);
  const place = { method: "POST", path: "/api/v1/chat/send" };
  connection.write(
    requestText(place, { ...elsewhere(), "content-type": "text/nonsense", "content-length": "999999999" }),
  );
  expect((await connection.reply(place)).error).toBe("unauthenticated");
  await connection.closed;
});
