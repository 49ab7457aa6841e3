import { describe, expect, test } from "vitest";
import { SECRETS, shareGateway, startGateway, type TestGateway } from "#test/harness/gateway.ts";
import type { HookSending } from "#test/harness/hooks.ts";
import { openConnection, requestText } from "#test/harness/raw.ts";
import type { Reply } from "#test/harness/rest.ts";
import { senders } from "#test/harness/senders.ts";

const PROXY = { trustedProxies: ["127.0.0.1"] };
const GITHUB = senders.github.makeSecret("first");
const mappings = { signed: { match: {}, message: "hi", verify: { type: "github", secret: GITHUB } } } as const;
const gateway = await shareGateway({ config: { gateway: PROXY, webhooks: { mappings } } });
const good = SECRETS.webhookToken;

let addresses = 0;
/** The headers of a request from an address of its own, so that no test uses up the patience for another. */
const elsewhere = (): Record<string, string> => ({
  "x-forwarded-for": `198.51.100.${++addresses}`,
  "x-forwarded-proto": "https",
});
const wake = (headers: Record<string, string | null>, at = gateway.hooks) => at.wake({ text: "hi" }, { headers });

/** A reply as its bytes are, but for what is new each time. */
const bareOf = ({ status, headers, text }: Reply) => ({
  status,
  headers: [...headers].filter(([name]) => name !== "x-request-id" && name !== "date"),
  text: text.replace(/req_[0-9A-Z]{26}/, "req"),
});

describe("the shared token", () => {
  test.each([
    ["in Authorization", { authorization: `Bearer ${good}` }],
    ["in Authorization, in small letters", { authorization: `bearer ${good}` }],
    ["in x-gateway-token", { authorization: null, "x-gateway-token": good }],
    ["in both", { authorization: `Bearer ${good}`, "x-gateway-token": good }],
    [
      "in x-gateway-token, beside a token of somebody in between",
      { authorization: "Bearer of-a-proxy", "x-gateway-token": good },
    ],
    ["in x-gateway-token, beside a password", { authorization: "Basic dXNlcjpwYXNzd29yZA==", "x-gateway-token": good }],
    ["in Authorization, beside another one", { authorization: `Bearer ${good}`, "x-gateway-token": "other" }],
  ])("is taken %s", async (_, headers) => {
    expect((await wake(headers as Record<string, string | null>)).status).toBe(200);
  });

  test.each([
    ["a wrong token", { authorization: "Bearer wrong" }],
    ["a wrong token in x-gateway-token", { "x-gateway-token": "wrong" }],
    ["an empty x-gateway-token", { "x-gateway-token": "" }],
    ["a token with a scheme in x-gateway-token", { "x-gateway-token": `Bearer ${good}` }],
    ["a token without a scheme in Authorization", { authorization: good }],
    ["a token cut short", { "x-gateway-token": good.slice(0, -1) }],
    ["a token with more behind it", { authorization: `Bearer ${good}x` }],
    ["two tokens", { "x-gateway-token": `${good}, ${good}` }],
    ["a key of REST", { authorization: `Bearer ${SECRETS.key}` }],
    ["a token of RPC", { authorization: `Bearer ${SECRETS.rpcToken}` }],
    ["the console's token", { authorization: `Bearer ${SECRETS.consoleToken}` }],
    ["a secret that senders sign with", { authorization: `Bearer ${GITHUB}` }],
    ["a huge token", { "x-gateway-token": "x".repeat(15_000) }],
  ])("missing looks like %s, byte for byte", async (_, wrong) => {
    const missing = await wake({ ...elsewhere(), authorization: null });
    const refused = await wake({ ...elsewhere(), authorization: null, ...(wrong as Record<string, string>) });
    expect(bareOf(refused)).toEqual(bareOf(missing));
    expect(refused.error).toBe("unauthenticated");
  });

  test.each(["?token=", "?access_token=", "?x-gateway-token="])("is none in the URL: %s", async (query) => {
    const reply = await gateway.hooks.send(
      `/wake${query}${good}`,
      { text: "hi" },
      { token: null, headers: elsewhere() },
    );
    expect(reply.error).toBe("unauthenticated");
  });

  test.each(["/wake", "/agent", "", "/any", "/nobody"])(
    "is asked for at %j before anything is said of the request",
    async (below) => {
      for (const sending of [{}, { headers: { "content-type": "text/nonsense" } }] as HookSending[]) {
        const headers = { ...elsewhere(), ...sending.headers };
        expect((await gateway.hooks.send(below, "no JSON", { token: null, headers })).error).toBe("unauthenticated");
      }
    },
  );

  test("leaves no trace in the log or the recorder, neither good nor wrong", async () => {
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
});

describe("several shared tokens", () => {
  const tokens = ["the-first-webhook-token", "the-second-webhook-token", "the-third-webhook-token"] as const;
  const taken = async (at: TestGateway) =>
    Promise.all(tokens.map(async (token) => (await at.hooks.wake({ text: "hi" }, { token })).status));

  test("are all taken, and one that a reload takes away stops at once, also on a connection that is open", async () => {
    await using rotating = await startGateway({
      config: { webhooks: { token: [tokens[0], { value: tokens[1], since: "2026-03-01" }] } },
    });
    expect(await taken(rotating)).toEqual([200, 200, 401]);
    await using connection = await openConnection(rotating.url);
    const place = { method: "POST", path: "/hooks/wake" };
    const request = requestText(
      place,
      { "x-gateway-token": tokens[0], "content-type": "application/json" },
      '{"text":"hi"}',
    );
    connection.write(request);
    expect((await connection.reply(place)).status).toBe(200);
    await rotating.reload({ webhooks: { token: [tokens[1], tokens[2]] } });
    connection.write(request);
    expect((await connection.reply(place)).status).toBe(401);
    expect(await taken(rotating)).toEqual([401, 200, 200]);
  });

  test("are told apart on the timeline", async () => {
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

  test("F16: rotate 100 times, and no request with a token that counts fails", async () => {
    const tokenAt = (n: number) => `rotated-webhook-token-${n}`;
    const configAt = (n: number) => ({ webhooks: { token: [tokenAt(n), tokenAt(n + 1)] } });
    await using rotating = await startGateway({ config: configAt(0) });
    for (let n = 1; n <= 100; n++) {
      const inBetween = [1, 2, 3].map(() => rotating.hooks.wake({ text: "hi" }, { token: tokenAt(n) }));
      await rotating.reload(configAt(n));
      for (const { status } of await Promise.all(inBetween)) expect(status).toBe(200);
      expect((await rotating.hooks.wake({ text: "hi" }, { token: tokenAt(n - 1) })).status).toBe(401);
    }
  });
});

describe("F29: guessing", () => {
  test.each([
    ["tokens", (from: Record<string, string>) => gateway.hooks.wake({ text: "hi" }, { token: "guess", headers: from })],
    [
      "signatures",
      (from: Record<string, string>) =>
        gateway.hooks.named("signed", {}, { headers: { ...from, "x-hub-signature-256": `sha256=${"0".repeat(64)}` } }),
    ],
  ])(
    "%s from one address is always 401, and from the 21st failure on it is told to wait and cut off",
    async (_, guess) => {
      const from = elsewhere();
      for (let n = 1; n <= 20; n++) {
        const { error, headers } = await guess(from);
        expect([error, headers.get("retry-after"), headers.get("connection")]).not.toContain("close");
        expect([error, headers.get("retry-after")]).toEqual(["unauthenticated", null]);
      }
      const { error, headers } = await guess(from);
      expect([error, headers.get("connection")]).toEqual(["unauthenticated", "close"]);
      expect(Number(headers.get("retry-after"))).toBeGreaterThan(50);
      expect(Number(headers.get("retry-after"))).toBeLessThanOrEqual(60);
      // A good one from there still passes, and others are let be.
      expect((await wake(from)).status).toBe(200);
      expect((await guess(elsewhere())).headers.get("retry-after")).toBeNull();
    },
  );

  test("is counted, and neither logged nor recorded one by one", async () => {
    await using guessed = await startGateway();
    for (let n = 0; n < 40; n++) await wake({ authorization: "Bearer guess" }, guessed.hooks);
    await wake({}, guessed.hooks);
    expect(guessed.linesOf("auth.failed", { surface: "hooks" })).toHaveLength(20);
    const metrics = await guessed.rest.send("GET", "/metrics", { key: SECRETS.rpcToken });
    expect(metrics.text).toContain('gateway_auth_failures_total{surface="hooks"} 40');
    const { json } = await guessed.console.call("deliveries.list", { query: { outcome: "refused", limit: "500" } });
    expect((json.deliveries as unknown[]).length).toBe(20);
  });
});

describe("a stranger's body", () => {
  const place = { method: "POST", path: "/hooks/wake" };

  test.each([
    ["without a token", "/hooks/wake", {}],
    [
      "from a page of somebody else",
      "/hooks/wake",
      { authorization: `Bearer ${good}`, origin: "https://pages.example" },
    ],
    ["without a signature, where one is asked for", "/hooks/signed", { authorization: `Bearer ${good}` }],
    ["with a signature that is too old", "/hooks/signed", { "x-hub-signature": "sha1=0" }],
  ])("is not read: %s", async (_, path, headers) => {
    await using connection = await openConnection(gateway.url);
    connection.write(
      requestText(
        { ...place, path },
        {
          ...elsewhere(),
          "content-type": "application/json",
          "content-length": "999999999",
          ...(headers as Record<string, string>),
        },
      ),
    );
    expect((await connection.reply({ ...place, path })).status).toBeGreaterThanOrEqual(401);
    await connection.closed;
  });

  test("is not asked for either", async () => {
    await using connection = await openConnection(gateway.url);
    const headers = {
      ...elsewhere(),
      expect: "100-continue",
      "content-type": "application/json",
      "content-length": "13",
    };
    connection.write(requestText(place, headers));
    expect((await connection.reply(place)).error).toBe("unauthenticated");
    expect(connection.interim()).toBe(0);
    await using other = await openConnection(gateway.url);
    other.write(requestText(place, { ...headers, authorization: `Bearer ${good}` }));
    await new Promise((resolve) => other.socket.once("data", resolve));
    other.write('{"text":"hi"}');
    expect((await other.reply(place)).status).toBe(200);
    expect(other.interim()).toBe(1);
  });
});
