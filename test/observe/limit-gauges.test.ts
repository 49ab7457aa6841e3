import { describe, expect, it } from "vitest";
import { type SomeConfig, startGateway, type TestGateway } from "#test/harness/gateway.ts";

/** The metrics whose names begin so, without help and type. */
async function metricsOf({ rest, rpcToken }: TestGateway, prefix: string): Promise<string[]> {
  const { text } = await rest.call("ops.metrics", { key: rpcToken });
  return text.split("\n").filter((line) => line.startsWith(prefix));
}

/** The status of the answer to a message of this length. A quarter of the characters are tokens, and the reply has as many. */
async function send({ rest }: TestGateway, length: number): Promise<number> {
  return (await rest.send("POST", "/api/v1/chat/send", { body: { message: "x".repeat(length) } })).status;
}

describe("the metrics of budgets", () => {
  const config: SomeConfig = {
    budgets: { daily: { per: "day", tokens: 100, warnAt: 0.5 }, wide: { per: "month", tokens: 100_000, cost: 1 } },
    agents: { main: { backend: "echo" } },
  };

  it("have the used part and warnAt of each configured budget", async () => {
    await using gateway = await startGateway({ config });
    await send(gateway, 120);
    expect(await metricsOf(gateway, "gateway_budget_")).toEqual([
      'gateway_budget_used_ratio{budget="daily"} 0.6',
      'gateway_budget_used_ratio{budget="wide"} 0.0006',
      'gateway_budget_warn_ratio{budget="daily"} 0.5',
      'gateway_budget_warn_ratio{budget="wide"} 0.8',
    ]);
    await gateway.reload({ agents: config.agents });
    expect(await metricsOf(gateway, "gateway_budget_")).toEqual([]);
  });

  it("count the turns that a budget refuses", async () => {
    await using gateway = await startGateway({ config });
    expect(await metricsOf(gateway, "gateway_budget_refused_total")).toEqual([]);
    await send(gateway, 240);
    expect(await send(gateway, 4)).toBe(429);
    expect(await metricsOf(gateway, "gateway_budget_refused_total")).toEqual([
      'gateway_budget_refused_total{budget="daily"} 1',
    ]);
  });

  it("count the waiting turns that a spent budget ends", async () => {
    const slow = { main: { backend: "echo" as const, concurrency: 1, echo: { delayMs: 100 } } };
    await using gateway = await startGateway({ config: { ...config, agents: slow } });
    await Promise.all([240, 240, 240].map((length) => send(gateway, length)));
    expect(await metricsOf(gateway, "gateway_budget_refused_total")).toEqual([
      'gateway_budget_refused_total{budget="daily"} 2',
    ]);
  });
});

it("the fullest share is the largest used part of all callers, and is left out without a limit of shares", async () => {
  const limits = { share: 0.5, turns: 10 };
  await using gateway = await startGateway({ config: { limits } });
  await gateway.console.call("agents.pause", { path: { agent_name: "main" } });
  for (const message of ["one", "two"]) await gateway.hooks.agent({ message });
  const [bytes = "", ...others] = await metricsOf(gateway, "gateway_fullest_share_ratio");
  expect(Number(bytes.split(" ")[1])).toBeGreaterThan(0);
  expect(others).toEqual([
    'gateway_fullest_share_ratio{kind="turns"} 0.4',
    'gateway_fullest_share_ratio{kind="events"} 0',
  ]);
  await gateway.reload({ limits: { ...limits, share: 1 } });
  expect(await metricsOf(gateway, "gateway_fullest_share_ratio")).toEqual([]);
});
