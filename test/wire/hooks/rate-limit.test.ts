import { describe, expect, test } from "vitest";
import { startGateway } from "#test/harness/gateway.ts";

const limited = (maxRequests: number, windowMs = 60_000, webhooks: object = {}) =>
  startGateway({ config: { webhooks: { rateLimit: { maxRequests, windowMs }, ...webhooks } } });
const EVENT = { text: "hi" };

describe("webhooks.rateLimit", () => {
  test("lets so many requests of a token through, whatever they ask for, and tells the next one when to come again", async () => {
    await using gateway = await limited(3);
    expect((await gateway.hooks.wake(EVENT)).status).toBe(200);
    expect((await gateway.hooks.agent({ message: "hi" })).status).toBe(200);
    expect((await gateway.hooks.mapped({})).status).toBe(404);
    const { error, headers, problem } = await gateway.hooks.wake(EVENT);
    expect(error).toBe("rate-limited");
    expect(headers.get("ratelimit-policy")).toBe('"token";q=3;w=60');
    expect(headers.get("ratelimit")).toBe(`"token";r=0;t=${headers.get("retry-after")}`);
    expect(problem.retry_after_ms).toBeGreaterThan(50_000);
    expect(problem.retry_after_ms).toBeLessThanOrEqual(60_000);
  });

  test("is 100 a minute where nobody says otherwise", async () => {
    await using gateway = await startGateway({ config: { webhooks: { rateLimit: undefined } } });
    const statuses = [];
    for (let n = 0; n < 101; n++) statuses.push((await gateway.hooks.wake(EVENT)).status);
    expect(statuses.slice(0, 100).every((status) => status === 200)).toBe(true);
    expect(statuses[100]).toBe(429);
  });

  test("is off with maxRequests: 0, and a reload sets it at once", async () => {
    await using gateway = await limited(0);
    for (let n = 0; n < 120; n++) expect((await gateway.hooks.wake(EVENT)).status).toBe(200);
    await gateway.reload({ webhooks: { rateLimit: { maxRequests: 1 } } });
    expect([(await gateway.hooks.wake(EVENT)).status, (await gateway.hooks.wake(EVENT)).status]).toEqual([200, 429]);
  });

  test("counts each token by itself, by whichever header it comes", async () => {
    const token = ["the-first-webhook-token", "the-second-webhook-token"];
    await using gateway = await limited(2, 60_000, { token });
    for (const one of token) {
      const headers = { "x-gateway-token": one };
      const statuses = [
        (await gateway.hooks.wake(EVENT, { token: one })).status,
        (await gateway.hooks.wake(EVENT, { token: null, headers })).status,
        (await gateway.hooks.wake(EVENT, { token: one })).status,
      ];
      expect(statuses).toEqual([200, 200, 429]);
    }
  });

  test("counts no request that was not authenticated, and those that were refused after that", async () => {
    await using gateway = await limited(2);
    for (let n = 0; n < 5; n++) await gateway.hooks.wake(EVENT, { token: "wrong" });
    expect((await gateway.hooks.wake("no JSON")).status).toBe(400);
    expect((await gateway.hooks.wake(EVENT)).status).toBe(200);
    expect((await gateway.hooks.wake(EVENT)).status).toBe(429);
  });

  test("refuses before the body is read", async () => {
    await using gateway = await limited(1);
    await gateway.hooks.wake(EVENT);
    const { error } = await gateway.hooks.wake("x", {
      headers: { "content-length": "999999999", "content-type": "text/x" },
    });
    expect(error).toBe("rate-limited");
  });

  test("is on the timeline: how many more may come", async () => {
    await using gateway = await limited(3);
    const lefts = [];
    for (let n = 0; n < 3; n++) {
      const { json } = await gateway.hooks.wake(EVENT);
      const got = await gateway.console.call("deliveries.get", { path: { delivery_id: String(json.deliveryId) } });
      const timeline = got.json.timeline as { name: string; detail: unknown }[];
      lefts.push(timeline.find(({ name }) => name === "rate-limit.counted")?.detail);
    }
    expect(lefts).toEqual([2, 1, 0].map((left) => ({ left, max_requests: 3, window_ms: 60_000 })));
  });
});
