import { expect, test, vi } from "vitest";
import { startGateway } from "#test/harness/gateway.ts";

const HOUR = 3_600_000;

test("a webhook over budget is refused with Retry-After and not stored, and accepted in the next window", async () => {
  const now = Date.now.bind(Date);
  const clock = { ahead: 0 };
  using _ = vi.spyOn(Date, "now").mockImplementation(() => now() + clock.ahead);
  // A turn with this message uses two tokens.
  await using gateway = await startGateway({
    config: {
      agents: { main: { backend: "echo" } },
      budgets: { hooks: { per: "hour", tokens: 2, sources: ["webhook"] } },
    },
  });
  const { store } = gateway.gateway;
  expect((await gateway.hooks.agent({ message: "hi" })).status).toBe(200);
  await expect.poll(async () => (await store.listBudgets())[0]?.state).toBe("exceeded");
  const before = store.stats();
  const leftMs = HOUR - (Date.now() % HOUR);
  const { status, error, headers, requestId } = await gateway.hooks.agent({ message: "hi" });
  expect([status, error]).toEqual([429, "budget-exceeded"]);
  expect(Number(headers.get("retry-after"))).toBeGreaterThan(leftMs / 1_000 - 5);
  expect(Number(headers.get("retry-after"))).toBeLessThanOrEqual(Math.ceil(leftMs / 1_000));
  expect(store.stats()).toMatchObject({ sessions: before.sessions, turnsQueued: 0, turnsRunning: 0 });
  const { json } = await gateway.console.call("deliveries.list", { query: { id: requestId } });
  expect(json.deliveries).toMatchObject([{ outcome: "refused", error: { name: "budget-exceeded" } }]);
  // Other sources are not affected.
  expect((await gateway.rest.call("chat.send", { body: { message: "hi" } })).status).toBe(200);
  clock.ahead = leftMs;
  expect((await gateway.hooks.agent({ message: "hi" })).status).toBe(200);
  expect((await store.listBudgets())[0]?.window.start).toBe(Date.now() - (Date.now() % HOUR));
});
