import { describe, expect, test } from "vitest";
import { SECRETS, shareGateway, startGateway, type TestGateway } from "#test/harness/gateway.ts";
import { exchange, openConnection, requestText } from "#test/harness/raw.ts";
import type { Reply } from "#test/harness/rest.ts";
import { RPC } from "#test/harness/rpc.ts";
import { senders } from "#test/harness/senders.ts";

const PROXY = { trustedProxies: ["127.0.0.1"] };
const GITHUB = senders.github.makeSecret("first");
const mappings = { signed: { match: {}, message: "hi", verify: { type: "github", secret: GITHUB } } } as const;
const gateway = await shareGateway({ config: { gateway: PROXY, webhooks: { mappings } } });
const LIST = { method: "GET", path: "/api/v1/skills/list" };
const WAKE = { method: "POST", path: "/hooks/wake" };
const authorization = `Bearer ${SECRETS.key}`;

type Headers = Record<string, string>;
let addresses = 0;
/** The headers of a request from another address each time, so that no test uses up the guess limit for another. */
function elsewhere(): Headers {
  return { "x-forwarded-for": `198.51.100.${++addresses}`, "x-forwarded-proto": "https" };
}

/** The bytes of a reply, without the parts that change each time. */
function bareOf({ status, headers, text }: Reply) {
  return {
    status,
    headers: [...headers].filter(([name]) => name !== "x-request-id" && name !== "date"),
    text: text.replace(/req_[0-9A-Z]{26}/, "req"),
  };
}

const { key, rpcToken, webhookToken, consoleToken } = SECRETS;
const call = JSON.stringify({ jsonrpc: "2.0", id: "a", method: "agent.list" });
const doors = [
  { door: "REST", surface: "rest", place: LIST, good: key, others: [rpcToken, webhookToken], body: undefined },
  { door: "RPC", surface: "rpc", place: RPC, good: rpcToken, others: [key, webhookToken], body: call },
  {
    door: "webhooks",
    surface: "hooks",
    place: WAKE,
    good: webhookToken,
    body: '{"text":"hi"}',
    others: [key, rpcToken, consoleToken, GITHUB],
  },
] as const;
const json = { "content-type": "application/json" };

describe.each(doors)("a request to $door", ({ surface, place, good, others, body }) => {
  const send = (headers: Headers, to: TestGateway = gateway, at: { method: string; path: string } = place) =>
    exchange(to.url, at, { ...(body && json), ...headers }, body);
  const guess = (from: Headers, to?: TestGateway) => send({ ...from, authorization: "Bearer a guess" }, to);

  test.each([
    ["a wrong token", "Bearer wrong"],
    ["a token cut short", `Bearer ${good.slice(0, -1)}`],
    ["a token with more behind it", `Bearer ${good}x`],
    ["two tokens", `Bearer ${good} ${good}`],
    ["the hash of a token", `Bearer sha256:${"0".repeat(64)}`],
    ["a huge token", `Bearer ${"x".repeat(15_000)}`],
    ...others.map((token) => [`a secret of another door (${token})`, `Bearer ${token}`]),
  ])("with %s gets the same bytes as one without a token", async (_, wrong) => {
    const missing = await send(elsewhere());
    const refused = await send({ ...elsewhere(), authorization: String(wrong) });
    expect(bareOf(refused)).toEqual(bareOf(missing));
    expect([refused.status, refused.error]).toEqual([401, "unauthenticated"]);
    expect(refused.headers.get("www-authenticate")).toBe('Bearer realm="agent-gateway"');
  });

  test.each([
    ["another scheme", `Basic ${Buffer.from("user:password").toString("base64")}`, " You sent the scheme `Basic`."],
    ["another scheme with a good token", `token ${good}`, " You sent the scheme `Token`."],
    ["no scheme", good, " You sent an Authorization header that does not begin with `Bearer`."],
    ["a wrong token and no scheme", "wrong", " You sent an Authorization header that does not begin with `Bearer`."],
    ["an unknown scheme", `${good} x`, " You sent an Authorization header that does not begin with `Bearer`."],
    ["nothing behind the scheme", "Bearer ", " You sent `Bearer` without a token."],
  ])("with %s gets a description of what it sent, without the token", async (_, wrong, words) => {
    const missing = await send(elsewhere());
    const refused = await send({ ...elsewhere(), authorization: wrong });
    const lengthless = (reply: Reply) => ({
      ...bareOf(reply),
      headers: bareOf(reply).headers.filter(([name]) => name !== "content-length"),
    });
    const unsent = / The request has none, or one that is not valid here\./;
    const expected = { ...lengthless(missing), text: bareOf(missing).text.replace(unsent, words) };
    expect(lengthless(refused)).toEqual(expected);
  });

  test("may write its scheme in any case, and may not have its token in the URL", async () => {
    for (const scheme of ["bearer", "BEARER"])
      expect((await send({ authorization: `${scheme} ${good}` })).status).toBe(200);
    for (const name of ["access_token", "token", "key", "x-gateway-token"])
      expect((await send(elsewhere(), gateway, { ...place, path: `${place.path}?${name}=${good}` })).status).toBe(401);
  });

  test("F29: that guesses tokens must wait from the 21st failure on, and its connection is closed", async () => {
    const from = elsewhere();
    await using connection = await openConnection(gateway.url);
    for (let n = 1; n <= 21; n++) {
      connection.write(requestText(place, { ...(body && json), ...from, authorization: `Bearer guess ${n}` }, body));
      const { status, headers } = await connection.reply(place);
      expect([status, headers.get("connection") === "close"]).toEqual([401, n === 21]);
      const wait = headers.get("retry-after");
      if (n < 21) expect(wait).toBeNull();
      else expect(Number(wait) > 50 && Number(wait) <= 60).toBe(true);
    }
    await connection.closed;
    // A valid token from there is still accepted, and other addresses are not affected.
    expect((await send({ ...from, authorization: `Bearer ${good}` })).status).toBe(200);
    expect((await guess(elsewhere())).headers.get("retry-after")).toBeNull();
    expect(JSON.stringify(gateway.logs)).not.toMatch(/guess \d/);
  });

  test("F29: that guesses tokens is counted, and not logged or recorded each time", async () => {
    await using guessed = await startGateway();
    for (let n = 0; n < 40; n++) await guess({}, guessed);
    await send({ authorization: `Bearer ${good}` }, guessed);
    expect(guessed.linesOf("auth.failed", { surface })).toHaveLength(20);
    const metrics = await guessed.rest.send("GET", "/metrics", { key: rpcToken });
    expect(metrics.text).toContain(`gateway_auth_failures_total{surface="${surface}"} 40`);
    const { json } = await guessed.console.call("deliveries.list", { query: { outcome: "refused", limit: "500" } });
    expect(json.deliveries).toHaveLength(20);
  });

  test("without a token is answered before its body is read, whatever the body is declared as", async () => {
    await using connection = await openConnection(gateway.url);
    const at = { ...place, method: "POST" };
    connection.write(
      requestText(at, { ...elsewhere(), "content-type": "text/nonsense", "content-length": "999999999" }),
    );
    expect((await connection.reply(at)).status).toBe(401);
    await connection.closed;
  });
});

test("with a wrong signature counts as a guess, like one with a wrong token", async () => {
  const from = elsewhere();
  const guess = (headers: Headers) =>
    gateway.hooks.named("signed", {}, { headers: { ...headers, "x-hub-signature-256": `sha256=${"0".repeat(64)}` } });
  for (let n = 1; n <= 21; n++) {
    const { error, headers } = await guess(from);
    expect([error, headers.has("retry-after")]).toEqual(["unauthenticated", n === 21]);
  }
  expect((await guess(elsewhere())).headers.get("retry-after")).toBeNull();
});

describe("the shared token of webhooks", () => {
  const good = webhookToken;
  const wake = (headers: Record<string, string | null>) => gateway.hooks.wake({ text: "hi" }, { headers });

  test.each([
    ["alone", { authorization: null, "x-gateway-token": good }],
    ["next to the same token in Authorization", { authorization: `Bearer ${good}`, "x-gateway-token": good }],
    ["next to the token of a proxy", { authorization: "Bearer of-a-proxy", "x-gateway-token": good }],
    ["next to a password", { authorization: "Basic dXNlcjpwYXNzd29yZA==", "x-gateway-token": good }],
    [
      "with a wrong token, next to a valid Authorization",
      { authorization: `Bearer ${good}`, "x-gateway-token": "other" },
    ],
  ])("is accepted in x-gateway-token %s", async (_, headers) => {
    expect((await wake(headers as Record<string, string | null>)).status).toBe(200);
  });

  test.each(["wrong", "", `Bearer ${good}`, good.slice(0, -1), `${good}, ${good}`, "x".repeat(15_000)])(
    "is not accepted in x-gateway-token: %s",
    async (wrong) => {
      const missing = await wake({ ...elsewhere(), authorization: null });
      const refused = await wake({ ...elsewhere(), authorization: null, "x-gateway-token": wrong });
      expect(bareOf(refused)).toEqual(bareOf(missing));
      expect(refused.error).toBe("unauthenticated");
    },
  );

  test.each(["/wake", "/agent", "", "/any", "/nobody"])("is required at %j before anything else", async (below) => {
    for (const type of ["application/json", "text/nonsense"]) {
      const headers = { ...elsewhere(), "content-type": type };
      expect((await gateway.hooks.send(below, "no JSON", { token: null, headers })).error).toBe("unauthenticated");
    }
  });

  test("is never in the log or the recorder, whether right or wrong", async () => {
    const from = elsewhere();
    await wake({ ...from, authorization: null, "x-gateway-token": "a-guess-of-somebody" });
    await wake({ ...from, authorization: null, "x-gateway-token": good });
    await gateway.logged("auth.failed", { address: from["x-forwarded-for"] });
    expect(JSON.stringify(gateway.logs)).not.toMatch(/a-guess-of-somebody|of-the-tests/);
    const { json } = await gateway.console.call("deliveries.list", { query: { surface: "hooks" } });
    for (const { delivery_id } of json.deliveries as { delivery_id: string }[]) {
      const { text } = await gateway.console.call("deliveries.get", { path: { delivery_id } });
      expect(text).not.toMatch(/a-guess-of-somebody|of-the-tests|"x-gateway-token"/);
    }
  });

  const tokens = ["the-first-webhook-token", "the-second-webhook-token", "the-third-webhook-token"] as const;

  test("may have several values; one that a reload removes is refused at once, also on an open connection", async () => {
    await using rotating = await startGateway({
      config: { webhooks: { token: [tokens[0], { value: tokens[1], since: "2026-03-01" }] } },
    });
    const taken = () =>
      Promise.all(tokens.map(async (token) => (await rotating.hooks.wake({ text: "hi" }, { token })).status));
    expect(await taken()).toEqual([200, 200, 401]);
    await using connection = await openConnection(rotating.url);
    const request = requestText(WAKE, { "x-gateway-token": tokens[0], ...json }, '{"text":"hi"}');
    connection.write(request);
    expect((await connection.reply(WAKE)).status).toBe(200);
    await rotating.reload({ webhooks: { token: [tokens[1], tokens[2]] } });
    connection.write(request);
    expect((await connection.reply(WAKE)).status).toBe(401);
    expect(await taken()).toEqual([401, 200, 200]);
  });

  test("is named on the timeline", async () => {
    await using rotating = await startGateway({
      config: { webhooks: { token: [tokens[0], { value: tokens[1], since: "2026-03-01", name: "ci" }] } },
    });
    const detailOf = async (token: string) => {
      const { json } = await rotating.hooks.wake({ text: "hi" }, { token });
      const got = await rotating.console.call("deliveries.get", { path: { delivery_id: String(json.deliveryId) } });
      const timeline = got.json.timeline as { name: string; detail: unknown }[];
      return [got.json.caller, timeline.find(({ name }) => name === "token.accepted")?.detail];
    };
    expect(await detailOf(tokens[0])).toEqual(["shared", { name: "shared", token: 1 }]);
    expect(await detailOf(tokens[1])).toEqual(["ci", { name: "ci", token: 2, since: "2026-03-01" }]);
  });
});

describe("a webhook without authentication", () => {
  test.each([
    ["from a page of another site", "/hooks/wake", { origin: "https://pages.example" }],
    ["without a signature, where one is asked for", "/hooks/signed", {}],
    ["with a signature that is too old", "/hooks/signed", { "x-hub-signature": "sha1=0" }],
  ])("is answered before its body is read: %s", async (_, path, headers) => {
    await using connection = await openConnection(gateway.url);
    const all = { ...elsewhere(), ...json, "content-length": "999999999", authorization: `Bearer ${webhookToken}` };
    connection.write(requestText({ ...WAKE, path }, { ...all, ...(headers as Headers) }));
    expect((await connection.reply({ ...WAKE, path })).status).toBeGreaterThanOrEqual(401);
    await connection.closed;
  });

  test("is not asked for its body, but one with a good token is", async () => {
    await using connection = await openConnection(gateway.url);
    const headers = { ...elsewhere(), ...json, expect: "100-continue", "content-length": "13" };
    connection.write(requestText(WAKE, headers));
    expect((await connection.reply(WAKE)).error).toBe("unauthenticated");
    expect(connection.interim()).toBe(0);
    await using other = await openConnection(gateway.url);
    other.write(requestText(WAKE, { ...headers, authorization: `Bearer ${webhookToken}` }));
    await new Promise((resolve) => other.socket.once("data", resolve));
    other.write('{"text":"hi"}');
    expect([(await other.reply(WAKE)).status, other.interim()]).toEqual([200, 1]);
  });
});

describe("a token in clear text", () => {
  const from = async (at: TestGateway, headers: Headers) =>
    (await exchange(at.url, LIST, { authorization, ...headers })).error;
  const far = "203.0.113.7";

  test.each([
    ["from another machine", { "x-forwarded-for": far }, "tls-required"],
    ["from another machine, by IPv6", { "x-forwarded-for": "2001:db8::7" }, "tls-required"],
    ["with a forged address of this machine", { "x-forwarded-for": `127.0.0.1, ${far}` }, "tls-required"],
    ["over a proxy that reports http", { "x-forwarded-for": far, "x-forwarded-proto": "http" }, "tls-required"],
    [
      "with https reported only by the client",
      { "x-forwarded-for": far, "x-forwarded-proto": "https, http" },
      "tls-required",
    ],
    ["that a proxy took over TLS", { "x-forwarded-for": far, "x-forwarded-proto": "https" }, undefined],
    ["from this machine", {}, undefined],
    ["from an invalid address", { "x-forwarded-for": "unknown" }, "tls-required"],
  ])("%s", async (_, headers, error) => {
    expect(await from(gateway, headers as Headers)).toBe(error);
  });

  test("is refused before it is checked: valid and invalid alike", async () => {
    const send = (token: string) => exchange(gateway.url, LIST, { "x-forwarded-for": far, authorization: token });
    expect(bareOf(await send(authorization))).toEqual(bareOf(await send("Bearer wrong")));
  });

  test("is accepted from a configured network, and headers of an unknown proxy are ignored", async () => {
    await using trusting = await startGateway({ config: { gateway: { ...PROXY, clearTextFrom: ["203.0.113.0/24"] } } });
    expect(await from(trusting, { "x-forwarded-for": far })).toBeUndefined();
    expect(await from(trusting, { "x-forwarded-for": "203.0.114.7" })).toBe("tls-required");
    await using alone = await startGateway();
    expect(await from(alone, { "x-forwarded-for": far })).toBeUndefined();
  });
});

describe("a page of another site", () => {
  const send = (headers: Headers, at = gateway) => exchange(at.url, LIST, { authorization, ...headers });

  test.each([
    ["its Origin", { origin: "https://pages.example" }],
    ["an invalid Origin", { origin: "null" }],
    ["our Host with another scheme", { host: "localhost:1", origin: "https://localhost:1" }],
    ["our Host with another port", { host: "localhost:1", origin: "http://localhost:2" }],
    ["a name that points here", { host: "rebound.example" }],
    ["a name that points here, as its own origin", { host: "rebound.example", origin: "http://rebound.example" }],
    ["a name that starts like ours", { host: "localhost.rebound.example" }],
    ["no name", { host: "" }],
  ])("is refused by %s, also with a good token", async (_, headers) => {
    expect((await send(headers as Headers)).error).toBe("origin-not-allowed");
  });

  test.each([
    { host: "localhost" },
    { host: "LOCALHOST:18789" },
    { host: "127.0.0.1:18789" },
    { host: "127.8.9.10" },
    { host: "[::1]:18789" },
    { host: "localhost:1", origin: "http://localhost:1" },
  ])("is distinguished from our own: %j", async (headers) => {
    expect((await send(headers as Headers)).status).toBe(200);
  });

  test("may be allowed by its origin, and its name is then allowed as a Host", async () => {
    await using open = await startGateway({ config: { gateway: { allowedOrigins: ["https://console.example"] } } });
    const allowed = { host: "console.example", origin: "https://console.example" };
    expect((await send(allowed, open)).status).toBe(200);
    expect((await send({ ...allowed, origin: "https://other.example" }, open)).error).toBe("origin-not-allowed");
  });

  test("may read the health, the readiness and the contract", async () => {
    for (const path of ["/healthz", "/readyz", "/openapi.json", "/openrpc.json"]) {
      const reply = await exchange(gateway.url, { method: "GET", path }, { host: "probe.example" });
      expect([path, reply.status]).toEqual([path, 200]);
    }
  });
});
