// biome-ignore-all lint/suspicious/noThenProperty: the key of the configuration.
import { expect, it } from "vitest";
import { postgresTests } from "#test/harness/postgres.ts";
import { startNodes } from "./nodes.ts";

await postgresTests((server) => {
  it("a budget of ten turns lets ten of 64 concurrent messages to two gateways run, and refuses the others, also after a restart", async () => {
    // A turn with this message uses two tokens.
    const config = { budgets: { daily: { per: "day" as const, tokens: 20 } } };
    await using nodes = await startNodes(server, 2, { config });
    const send = (n: number) =>
      nodes.at(n).rest.call("chat.send", { body: { message: "hi", agent: "main", session_id: `chat:${n}` } });
    const replies = await Promise.all(Array.from({ length: 64 }, (_, n) => send(n)));
    const statusOf = (status: number) => replies.filter((reply) => reply.status === status);
    expect(statusOf(200)).toHaveLength(10);
    expect(statusOf(429)).toHaveLength(54);
    for (const { error, headers } of statusOf(429)) {
      expect(error).toBe("budget-exceeded");
      expect(Number(headers.get("retry-after"))).toBeGreaterThan(0);
    }
    const used = { state: "exceeded", tokens: { used: 20, reserved: 0 } };
    for (const { gateway } of nodes.all) expect(await gateway.store.listBudgets()).toMatchObject([used]);
    const refusals = await Promise.all(
      nodes.all.map(async (node) => {
        const { text } = await node.rest.call("ops.metrics", { key: node.rpcToken });
        expect(text).toContain('gateway_budget_used_ratio{budget="daily"} 1\n');
        return Number(/^gateway_budget_refused_total\{budget="daily"\} (\d+)$/m.exec(text)?.[1] ?? 0);
      }),
    );
    expect(refusals.reduce((sum, count) => sum + count)).toBe(54);
    expect(nodes.at(0).gateway.store.stats()).toMatchObject({ turnsQueued: 0, turnsRunning: 0 });
    const restarted = await nodes.start();
    expect((await restarted.rest.call("chat.send", { body: { message: "hi" } })).error).toBe("budget-exceeded");
    expect(await restarted.gateway.store.listBudgets()).toMatchObject([used]);
    // A grant on one gateway opens the budget on all of them, and is in the stream of each.
    await nodes.at(0).gateway.store.grantBudget("daily", { now: Date.now(), tokens: 2, by: "ops" });
    expect((await send(101)).status).toBe(200);
    expect((await send(102)).status).toBe(429);
    const { entries } = await nodes.at(1).gateway.store.readGatewayEntries({ after: 0, limit: 100 });
    expect(entries.map(({ name }) => name).filter((name) => name.startsWith("budget."))).toEqual([
      "budget.warning",
      "budget.exceeded",
      "budget.granted",
      "budget.exceeded",
    ]);
  }, 60_000);

  it("a budget that pauses lets messages wait, and each gateway runs them once a grant makes room", async () => {
    const config = { budgets: { daily: { per: "day" as const, tokens: 2, then: "pause" as const } } };
    await using nodes = await startNodes(server, 2, { config });
    const body = { message: "hi", agent: "main", wait: false };
    const started = await Promise.all(
      [0, 1, 2, 3].map((n) => nodes.at(n).rest.call("chat.send", { body: { ...body, session_id: `chat:${n}` } })),
    );
    const statuses = async () => {
      const { items } = await nodes.at(0).gateway.store.listTurns({ limit: 10 });
      return items.map(({ status }) => status).sort();
    };
    expect(started.map(({ status }) => status)).toEqual([202, 202, 202, 202]);
    await expect.poll(statuses).toEqual(["completed", "queued", "queued", "queued"]);
    await nodes.at(1).gateway.store.grantBudget("daily", { now: Date.now(), tokens: 1_000, by: "ops" });
    await expect.poll(statuses, { timeout: 10_000 }).toEqual(Array.from({ length: 4 }, () => "completed"));
  }, 60_000);
});
