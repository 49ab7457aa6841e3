import { expect, test } from "vitest";
import type { Agent } from "#core/agents/agents.ts";
import { createCountedModels, OTHER_MODELS } from "#core/agents/counted-models.ts";
import { startGateway } from "#test/harness/gateway.ts";
import { createRpc } from "#test/harness/rpc.ts";

type Parts = Parameters<typeof createCountedModels>[0];
function agentWith(models: readonly string[] | undefined, model?: string) {
  return { name: "main", model, backend: { kind: "echo", models } } as unknown as Agent;
}
function start(usageModels: number, counted: readonly string[] = []) {
  const asked: object[] = [];
  const store = {
    sumUsage: async (query: object) => {
      asked.push(query);
      return counted.map((key) => ({ key, counts: {}, withoutUsage: 0 }));
    },
  };
  const failed: string[] = [];
  const parts = {
    store,
    clock: { now: () => 1e12 },
    settings: () => ({ limits: { usageModels } }),
    events: { storeFailed: ({ operation }: { operation: string }) => failed.push(operation) },
  };
  return { count: createCountedModels(parts as unknown as Parts), asked, parts, failed };
}

test("the models that an agent lists, its own and those that answer are always counted by name", () => {
  const { count, asked } = start(0);
  const agent = agentWith(["fast", "deep"], "own");
  expect(["fast", "deep", "own", undefined].map((model) => count(agent, model))).toEqual([
    "fast",
    "deep",
    "own",
    "own",
  ]);
  expect(count(agentWith(undefined), undefined)).toBe("echo");
  expect(asked).toEqual([]);
});

test("the first other names are counted by name, and the rest under one name", () => {
  const { count } = start(2);
  const agent = agentWith(undefined);
  expect(["a", "b", "c", "a", "d"].map((model) => count(agent, model))).toEqual([
    "a",
    "b",
    OTHER_MODELS,
    "a",
    OTHER_MODELS,
  ]);
});

test("names that the store has counted are first, also after a restart, and are read once", async () => {
  const { count, asked } = start(3, ["x", "y", OTHER_MODELS]);
  const agent = agentWith(undefined);
  count(agent, "x");
  await Promise.resolve();
  await Promise.resolve();
  expect(["x", "y", "z"].map((model) => count(agent, model))).toEqual(["x", "y", OTHER_MODELS]);
  expect(asked).toHaveLength(1);
});

test("the names are limited even if the store cannot be read", async () => {
  const { count, parts, failed } = start(1);
  parts.store.sumUsage = () => Promise.reject(new Error("away"));
  const agent = agentWith(undefined);
  expect([count(agent, "a"), count(agent, "b")]).toEqual(["a", OTHER_MODELS]);
  await expect.poll(() => failed).toEqual(["sumUsage"]);
});

test("a chat key that names many models creates only few rows of usage and labels of metrics", async () => {
  await using gateway = await startGateway({ config: { limits: { usageModels: 2 } } });
  for (let n = 1; n <= 5; n++)
    await gateway.rest.call("chat.send", { body: { message: "Hello", model: `m${n}`, user_id: `user-${n}` } });
  const { result } = await createRpc(gateway.url).call("usage.stats", { groupBy: "model" });
  const { groups } = result as { groups: { key: string; counts: { messages: number; attempts: number } }[] };
  expect(groups.map(({ key, counts }) => [key, counts.messages, counts.attempts])).toEqual([
    ["(other)", 3, 3],
    ["m1", 1, 1],
    ["m2", 1, 1],
  ]);
  const rows = await gateway.gateway.store.readUsage({ from: 0, to: Number.MAX_SAFE_INTEGER });
  expect(rows).toHaveLength(3);
  const metrics = gateway.gateway.metrics.flatMap((metric) => JSON.stringify(metric));
  expect(metrics.join()).not.toContain("m1");
});
