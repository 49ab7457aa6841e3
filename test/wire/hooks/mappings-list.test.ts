import { describe, expect, test } from "vitest";
import { startGateway, type TestGateway } from "#test/harness/gateway.ts";
import { senders } from "#test/harness/senders.ts";

const push = { match: { "body.ref": "main", "body.token": "seen-nowhere", "body.n": 2 }, message: "{body.text}" };
const verify = { type: "github" as const, secret: "a-secret-of-a-sender" };
const agents = { main: { backend: "echo" as const }, side: { backend: "echo" as const } };
const places = { session: "webhook:x-{body.n}", coalesce: { key: "{body.n}", take: "all" as const }, channel: "ops" };
const zulu = { ...push, ...places, agent: "side", to: "{body.to}", thread: "{body.ts}", verify };
const mappings = { zulu, alpha: { match: {}, message: "Hm." } };
const config = { gateway: { defaultAgent: "main" }, agents, webhooks: { path: "/in", mappings } };

test("mappings are listed in the order of the file, without their secrets", async () => {
  await using gateway = await startGateway({ config });
  const { json, text } = await gateway.rest.call("mappings.list", { key: gateway.adminKey });
  expect(json.mappings).toMatchObject([
    {
      name: "zulu",
      path: "/in/zulu",
      match: { "body.ref": ["main"], "body.token": ["[hidden]"], "body.n": ["2"] },
      message: "{body.text}",
      agent: "side",
      session: "webhook:x-{body.n}",
      to: "{body.to}",
      thread: "{body.ts}",
      coalesce: { key: "{body.n}", window_ms: 30_000, max_wait_ms: 300_000, take: "all" },
      delivery: "none",
      announce_to: null,
      verify: "github",
      verify_url: null,
    },
    {
      name: "alpha",
      match: {},
      agent: "main",
      session: null,
      model: null,
      channel: null,
      verify: null,
      coalesce: null,
    },
  ]);
  expect(text).not.toMatch(/seen-nowhere|a-secret-of-a-sender/);
});

test("a mapping of Twilio has the address that its sender signs", async () => {
  const url = "https://example.com/in/sms?a=1";
  const verify = { type: "twilio" as const, secret: "a-secret-of-a-sender", url };
  const mappings = { sms: { match: {}, message: "hi", verify } };
  await using gateway = await startGateway({ config: { ...config, webhooks: { path: "/in", mappings } } });
  const { json } = await gateway.console.call("mappings.list");
  expect(json.mappings).toMatchObject([{ name: "sms", verify: "twilio", verify_url: url }]);
});

test("mappings are those of the latest reload, and may be an empty list", async () => {
  await using gateway = await startGateway({ config });
  await gateway.reload({ ...config, webhooks: { path: "/in", mappings: {} } });
  expect((await gateway.console.call("mappings.list")).json).toMatchObject({ mappings: [], next_cursor: null });
});

describe("the remaining requests of the rate limits", () => {
  const SECRET = senders.github.makeSecret("a-hook");
  const rateLimit = { maxRequests: 3, windowMs: 60_000 };
  const mappings = {
    push: { match: {}, message: "hi", verify: { type: "github" as const, secret: SECRET } },
    any: { match: {}, message: "hi" },
  };
  const tokens = [
    { name: "old", value: "a-token-that-goes-soon", since: "2020-02-01" },
    { name: "new", value: "a-token-that-is-new-here" },
    { value: "a-token-for-some-other-day", since: "2999-01-01" },
    { value: "a-token-without-a-real-day", since: "2026-02-31" },
  ];
  type Use = { limit: number; remaining: number; window_ms: number; resets_at: string | null } | null;
  type List = { tokens: { rate_limit: Use }[]; mappings: { rate_limit: Use }[] };
  const list = async ({ console }: TestGateway) => (await console.call("mappings.list")).json as unknown as List;

  test("are shown for each token and each signed mapping", async () => {
    await using gateway = await startGateway({ config: { webhooks: { token: tokens, rateLimit, mappings } } });
    const whole = { limit: 3, window_ms: 60_000, remaining: 3, resets_at: null };
    const before = await list(gateway);
    expect(before.mappings.map(({ rate_limit }) => rate_limit)).toEqual([whole, null]);
    expect(before.tokens.map(({ rate_limit }) => rate_limit)).toEqual([whole, whole, whole, whole]);
    const sent = Date.now();
    const wake = (token: string) => gateway.hooks.wake({ text: "hi" }, { token });
    for (let n = 0; n < 4; n++) await wake("a-token-that-goes-soon");
    await wake("a-token-that-is-new-here");
    const headers = await senders.github.sign(SECRET, "{}");
    await gateway.hooks.named("push", "{}", { token: null, headers });
    const after = await list(gateway);
    expect(after.tokens.map(({ rate_limit }) => rate_limit?.remaining)).toEqual([0, 2, 3, 3]);
    expect(after.mappings.map(({ rate_limit }) => rate_limit?.remaining)).toEqual([2, undefined]);
    const resets = Date.parse(String(after.tokens[0]?.rate_limit?.resets_at));
    expect(resets).toBeGreaterThanOrEqual(sent + 60_000 - 5);
    expect(resets).toBeLessThanOrEqual(Date.now() + 60_000 + 5);
  });

  test("are null without a limit, and complete after the limit changes", async () => {
    await using gateway = await startGateway({ config: { webhooks: { token: tokens, rateLimit } } });
    await gateway.hooks.wake({ text: "hi" }, { token: "a-token-that-goes-soon" });
    await gateway.reload({ webhooks: { token: tokens, rateLimit: { maxRequests: 5, windowMs: 60_000 } } });
    expect((await list(gateway)).tokens[0]?.rate_limit).toMatchObject({ limit: 5, remaining: 5, resets_at: null });
    await gateway.reload({ webhooks: { token: tokens, rateLimit: { maxRequests: 0 } } });
    expect((await list(gateway)).tokens[0]?.rate_limit).toBeNull();
  });

  test("are next to the age of each token, and no token is shown", async () => {
    await using gateway = await startGateway({ config: { webhooks: { token: tokens } } });
    const { json, text } = await gateway.console.call("mappings.list");
    const days = Math.floor((Date.now() - Date.parse("2020-02-01")) / 86_400_000);
    expect(json.tokens).toMatchObject([
      { name: "old", since: "2020-02-01", age_days: days, max_age_days: 90 },
      { name: "new", since: null, age_days: null },
      { name: "shared", since: "2999-01-01", age_days: null },
      { name: "shared", since: "2026-02-31" },
    ]);
    expect(text).not.toContain("a-token-");
  });
});
