import { describe, expect, test } from "vitest";
import { SECRETS, type SomeConfig, startGateway, type TestGateway } from "#test/harness/gateway.ts";
import type { Reply } from "#test/harness/rest.ts";
import { createRpc } from "#test/harness/rpc.ts";

type Limit = { maxRequests: number; windowMs?: number };
type Sending = { token?: string; body?: unknown; headers?: Record<string, string> };
const FIRST = "the-first-token-of-the-tests";
const SECOND = "the-second-token-of-the-tests";

type Door = {
  door: string;
  limit(rateLimit: Limit): SomeConfig;
  send(to: TestGateway, sending?: Sending): Promise<Reply>;
};
const DOORS: Door[] = [
  {
    door: "REST",
    limit: (rateLimit) => {
      const keys = [FIRST, SECOND].map((key) => ({ name: key, key }));
      return { gateway: { rest: { rateLimit, auth: { keys } } } };
    },
    send: ({ rest }, { token = FIRST, body, headers = {} } = {}) =>
      rest.call(body === undefined ? "skills.list" : "chat.send", { key: token, headers, body }),
  },
  {
    door: "webhooks",
    limit: (rateLimit) => ({ webhooks: { rateLimit, token: [FIRST, SECOND] } }),
    send: ({ hooks }, { token = FIRST, body = { text: "hi" }, headers = {} } = {}) =>
      hooks.wake(body, { token, headers }),
  },
];
const MINUTE = 60_000;

describe.each(DOORS)("the rate limit of $door", ({ limit, send }) => {
  const limited = (maxRequests: number, windowMs = MINUTE) =>
    startGateway({ config: limit({ maxRequests, windowMs }) });

  test("accepts the allowed requests of a token, and answers the next one with the time of a retry", async () => {
    await using gateway = await limited(3);
    for (let n = 0; n < 3; n++) expect((await send(gateway)).status).toBe(200);
    const { error, headers, problem } = await send(gateway);
    expect(error).toBe("rate-limited");
    expect(headers.get("ratelimit-policy")).toBe('"token";q=3;w=60');
    expect(headers.get("ratelimit")).toBe(`"token";r=0;t=${headers.get("retry-after")}`);
    expect(problem.retry_after_ms).toBeGreaterThan(50_000);
    expect(problem.retry_after_ms).toBeLessThanOrEqual(MINUTE);
  });

  test("is separate for each token", async () => {
    await using gateway = await limited(2);
    for (const token of [FIRST, SECOND]) {
      const statuses = [];
      for (let n = 0; n < 3; n++) statuses.push((await send(gateway, { token })).status);
      expect(statuses).toEqual([200, 200, 429]);
    }
  });

  test("does not count unauthenticated requests, but counts requests that are refused later", async () => {
    await using gateway = await limited(2);
    for (let n = 0; n < 5; n++) await send(gateway, { token: "wrong" });
    const statuses = [await send(gateway, { body: "no JSON" }), await send(gateway), await send(gateway)];
    expect(statuses.map(({ status }) => status)).toEqual([400, 200, 429]);
  });

  test("is checked before the body is read", async () => {
    await using gateway = await limited(1);
    await send(gateway);
    expect((await send(gateway, { body: "{", headers: { "content-type": "text/x" } })).error).toBe("rate-limited");
  });

  test("is off with maxRequests: 0, and a reload changes it at once", async () => {
    await using gateway = await limited(0);
    for (let n = 0; n < 120; n++) expect((await send(gateway)).status).toBe(200);
    await gateway.reload(limit({ maxRequests: 1 }));
    expect([(await send(gateway)).status, (await send(gateway)).status]).toEqual([200, 429]);
  });

  test("has room again after the time that the answer names", async () => {
    await using gateway = await limited(1, 150);
    // On a busy machine the window of one request may end before the next is sent.
    let reply = await send(gateway);
    while (reply.status === 200) reply = await send(gateway);
    await new Promise((resolve) => setTimeout(resolve, reply.problem.retry_after_ms));
    expect((await send(gateway)).status).toBe(200);
  });

  test("F17: is never exceeded in any window, wherever the window starts", async () => {
    const [most, windowMs] = [5, 100];
    await using gateway = await limited(most, windowMs);
    const passed: { sent: number; answered: number }[] = [];
    while (passed.length <= most * 4) {
      const sent = performance.now();
      const { status } = await send(gateway);
      if (status === 200) passed.push({ sent, answered: performance.now() });
    }
    // Each was decided between its two times, and a complete window is between a request and the fifth after it.
    for (let n = most; n < passed.length; n++) {
      const [{ sent }, { answered }] = [passed[n - most], passed[n]] as [(typeof passed)[0], (typeof passed)[0]];
      expect(answered - sent).toBeGreaterThan(windowMs);
    }
  });
});

test("gateway.rest.rateLimit is separate for each key, even if two have the same name", async () => {
  await using gateway = await startGateway({ config: { gateway: { rest: { rateLimit: { maxRequests: 2 } } } } });
  const mint = async () => String((await gateway.console.call("keys.create", { body: { name: "twins" } })).json.key);
  const keys = [await mint(), await mint()];
  for (const key of [...keys, ...keys]) expect((await gateway.rest.call("skills.list", { key })).status).toBe(200);
});

describe("webhooks.rateLimit", () => {
  const EVENT = { text: "hi" };

  test("is 100 a minute by default", async () => {
    await using gateway = await startGateway({ config: { webhooks: { rateLimit: undefined } } });
    for (let n = 0; n < 100; n++) expect((await gateway.hooks.wake(EVENT)).status).toBe(200);
    expect((await gateway.hooks.wake(EVENT)).status).toBe(429);
  });

  test("counts a token in whichever header it is sent and for any request, and the timeline shows the remaining requests", async () => {
    await using gateway = await startGateway({ config: { webhooks: { rateLimit: { maxRequests: 3 } } } });
    const headers = { "x-gateway-token": gateway.webhookToken };
    const replies = [
      await gateway.hooks.wake(EVENT),
      await gateway.hooks.agent({ message: "hi" }, { token: null, headers }),
      await gateway.hooks.wake(EVENT),
    ];
    expect((await gateway.hooks.mapped({})).status).toBe(429);
    const lefts = [];
    for (const { json } of replies) {
      const got = await gateway.console.call("deliveries.get", { path: { delivery_id: String(json.deliveryId) } });
      const timeline = got.json.timeline as { name: string; detail: unknown }[];
      lefts.push(timeline.find(({ name }) => name === "rate-limit.counted")?.detail);
    }
    expect(lefts).toEqual([2, 1, 0].map((left) => ({ left, max_requests: 3, window_ms: MINUTE })));
  });
});

describe("gateway.rpc.rateLimit", () => {
  test("counts each call of a batch, and each token separately", async () => {
    await using gateway = await startGateway({ config: { gateway: { rpc: { rateLimit: { maxRequests: 3 } } } } });
    const client = createRpc(gateway.url);
    const batch = [1, 2, 3, 4].map((id) => ({ jsonrpc: "2.0", id, method: id === 2 ? "nothing" : "system.info" }));
    const { json } = await client.send(batch);
    const names = (json as unknown as { error?: { data: { name: string } } }[]).map(({ error }) => error?.data.name);
    expect(names).toEqual([undefined, "method-not-found", undefined, "rate-limited"]);
    const { error } = await client.call("agent.list");
    expect(error).toMatchObject({ code: -32004, message: "Rate limit exceeded" });
    expect(error?.data.retryAfterMs).toBeGreaterThan(50_000);
    expect((await client.call("agent.list", {}, { token: SECRETS.consoleToken })).error).toBeUndefined();
  });

  test("distinguishes a token named `console` from the console's own token, as idempotency keys do", async () => {
    const tokens = [{ name: "console", token: "a-token-of-that-name", permissions: "*" as const }];
    const rpc = { rateLimit: { maxRequests: 1, windowMs: MINUTE }, auth: { tokens } };
    await using gateway = await startGateway({ config: { gateway: { rpc } } });
    const client = createRpc(gateway.url);
    const turnIds: unknown[] = [];
    for (const token of [SECRETS.consoleToken, "a-token-of-that-name"]) {
      const params = { agentName: "main", message: "hi", sessionId: "whose", idempotencyKey: "one" };
      const { result } = await client.call("agent.sendMessage", params, { token });
      turnIds.push(result.turnId);
      expect((await client.call("agent.list", {}, { token })).error?.data.name).toBe("rate-limited");
    }
    expect(new Set(turnIds).size).toBe(2);
  });
});
