// biome-ignore-all lint/suspicious/noTemplateCurlyInString: references in a configuration look like that.
import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { parse } from "yaml";
import { load, refusal, withSections } from "./configs.ts";

test("every mistake is reported at once, in the order of the file", async () => {
  const lines = await refusal(
    "{\n agents: { main: { backend: 'x' } },\n gateway: { port: 'y' },\n store: { type: 'z' } }",
  );
  expect(lines.map((line) => line.split(":")[1])).toEqual(["2", "3", "4"]);
});

test("a default of the schema is the value of a configuration without the key", async () => {
  const { config } = await load(withSections({}));
  expect(config.limits).toEqual({
    turnsPerSession: 100,
    turns: 10_000,
    events: 100_000,
    messagesPerSession: 10_000,
    storeBytes: 2 ** 30,
    share: 0.25,
    notifications: 10_000,
    usageModels: 100,
    webhookBody: 256 * 1024,
    restBody: 2 ** 20,
    rpcBody: 2 ** 20,
    toolArguments: 2 ** 20,
    toolMessages: 8 * 2 ** 20,
  });
  const week = 7 * 86_400_000;
  expect(config.sessions).toEqual({
    retention: 30 * 86_400_000,
    webhookRetention: week,
    eventRetention: week,
    compactAt: 100_000,
  });
  expect(config.recorder).toEqual({ entries: 10_000, bytes: 64 * 2 ** 20, bodies: true, toolContent: true });
  expect(config.webhooks).toMatchObject({
    path: "/hooks",
    rateLimit: { maxRequests: 100, windowMs: 60_000 },
    mappings: {},
  });
  expect(config.agents.main).toMatchObject({
    heartbeat: { every: 1_800_000 },
    deadline: 600_000,
    concurrency: 256,
    skills: ["*"],
  });
});

test("every key of the schema has a description", () => {
  const silent: string[] = [];
  const visit = (schema: Record<string, unknown>, at: string) => {
    for (const [key, property] of Object.entries(
      (schema.properties ?? {}) as Record<string, Record<string, unknown>>,
    )) {
      if (property.description === undefined && property.$ref === undefined) silent.push(`${at}.${key}`);
      visit(property, `${at}.${key}`);
    }
  };
  const schema = parse(readFileSync("specs/config.schema.yaml", "utf8")) as {
    $defs: Record<string, Record<string, unknown>>;
  };
  visit(schema, "");
  for (const [name, shape] of Object.entries(schema.$defs)) visit(shape, name);
  expect(silent).toEqual([]);
});
