import { describe, expect, test } from "vitest";
import { SECRETS, startGateway } from "#test/harness/gateway.ts";

const limited = (maxRequests: number, windowMs: number) =>
  startGateway({ config: { gateway: { rest: { rateLimit: { maxRequests, windowMs } } } } });

describe("gateway.rest.rateLimit", () => {
  test("lets so many requests of a token through, and tells the next one when to come again", async () => {
    await using gateway = await limited(3, 60_000);
    for (let n = 0; n < 3; n++) expect((await gateway.rest.call("skills.list")).status).toBe(200);
    const { error, headers, problem } = await gateway.rest.call("skills.list");
    expect(error).toBe("rate-limited");
    expect(headers.get("ratelimit-policy")).toBe('"token";q=3;w=60');
    expect(headers.get("ratelimit")).toBe(`"token";r=0;t=${headers.get("retry-after")}`);
    expect(problem.retry_after_ms).toBeGreaterThan(50_000);
    expect(problem.retry_after_ms).toBeLessThanOrEqual(60_000);
  });

  test("counts each token by itself, whatever its name", async () => {
    await using gateway = await limited(2, 60_000);
    const minted = async () =>
      String((await gateway.console.call("keys.create", { body: { name: "twins" } })).json.key);
    for (const key of [await minted(), await minted(), SECRETS.key]) {
      const statuses = [];
      for (let n = 0; n < 3; n++) statuses.push((await gateway.rest.call("skills.list", { key })).status);
      expect(statuses).toEqual([200, 200, 429]);
    }
  });

  test("tells the truth: after the time it names there is room again", async () => {
    await using gateway = await limited(1, 150);
    await gateway.rest.call("skills.list");
    const { problem } = await gateway.rest.call("skills.list");
    await new Promise((resolve) => setTimeout(resolve, problem.retry_after_ms));
    expect((await gateway.rest.call("skills.list")).status).toBe(200);
  });

  test("never lets more through in any window, wherever it begins", async () => {
    const [most, windowMs] = [5, 100];
    await using gateway = await limited(most, windowMs);
    const passed: { sent: number; answered: number }[] = [];
    while (passed.length <= most * 4) {
      const sent = performance.now();
      const { status } = await gateway.rest.call("skills.list");
      if (status === 200) passed.push({ sent, answered: performance.now() });
    }
    // Each was judged between its two times, and a whole window lies between one and the fifth behind it.
    for (let n = most; n < passed.length; n++) {
      const [{ sent }, { answered }] = [passed[n - most], passed[n]] as [(typeof passed)[0], (typeof passed)[0]];
      expect(answered - sent).toBeGreaterThan(windowMs);
    }
  });

  test("counts no request that was not authenticated, and none is limited without it", async () => {
    await using gateway = await limited(1, 60_000);
    for (let n = 0; n < 5; n++) await gateway.rest.call("skills.list", { key: "wrong" });
    expect((await gateway.rest.call("skills.list")).status).toBe(200);
    await using free = await startGateway({ config: { gateway: { rest: { rateLimit: { maxRequests: 0 } } } } });
    for (let n = 0; n < 150; n++) expect((await free.rest.call("skills.list")).status).toBe(200);
  });

  test("refuses before the body is read", async () => {
    await using gateway = await limited(1, 60_000);
    await gateway.rest.call("skills.list");
    expect((await gateway.rest.call("chat.send", { body: "{" })).error).toBe("rate-limited");
  });
});
