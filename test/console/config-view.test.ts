import { expect, test } from "vitest";
import { originText, sectionOf, sectionsOf, tokensOf } from "#console/lib/config-view.ts";
import { expiryOf, keyState } from "#console/lib/key-expiry.ts";
import { budgetOf, limitsText, rateOf, rateText, shortLimits } from "#console/lib/key-limits.ts";
import type { ConfigValue } from "#generated/clients/typescript/src/rest-types.ts";

function value(path: string, of: ConfigValue["value"], more: Partial<ConfigValue> = {}): ConfigValue {
  return { path, value: of, origin: "file", line: null, column: null, variable: null, ...more };
}
const VALUES = [
  value("gateway.port", 18789, { origin: "flag", variable: "--port" }),
  value("gateway.rpc.auth.tokens.1.permissions.0", "agent.list"),
  value("gateway.rpc.auth.tokens.1.permissions.1", "system.info"),
  value("gateway.rpc.auth.tokens.0.name", "ops", { line: 4, column: 12 }),
  value("gateway.rpc.auth.tokens.0.permissions", "*"),
  value("gateway.rpc.auth.tokens.1.name", "dashboard"),
  value("store.type", "memory", { origin: "default" }),
];

test("a value is in the section of the first two parts of its path", () => {
  expect(["version", "store.type", "agents.main.backend", "gateway.rpc.auth.type"].map(sectionOf)).toEqual([
    "version",
    "store",
    "agents.main",
    "gateway.rpc",
  ]);
});

test("a search matches the path, the value and the origin", () => {
  const found = (search: string, origin = "") =>
    sectionsOf(VALUES, search, origin).flatMap(({ values }) => values.map(({ path }) => path));
  expect(found("MEMORY")).toEqual(["store.type"]);
  expect(found("--port")).toEqual(["gateway.port"]);
  expect(found("", "default")).toEqual(["store.type"]);
  expect(found("nowhere")).toEqual([]);
});

test("an origin has its line, its variable or its flag", () => {
  expect(originText(value("a", 1, { line: 4, column: 12 }))).toBe("file, line 4:12");
  expect(originText(value("a", 1, { origin: "environment", variable: "PORT" }))).toBe("environment, PORT");
  expect(originText(value("a", 1, { origin: "flag", variable: "--port" }))).toBe("flag --port");
});

test("tokens are in their order, each with its permissions", () => {
  const [ops, dashboard] = tokensOf(VALUES);
  expect([ops?.name, dashboard?.name]).toEqual(["ops", "dashboard"]);
  expect([ops?.permissions, dashboard?.permissions]).toEqual([["*"], ["agent.list", "system.info"]]);
});

test("permissions may be one list", () => {
  const [token] = tokensOf([value("gateway.rpc.auth.tokens.0.permissions", ["agent.list", "usage.stats"])]);
  const permissions = ["agent.list", "usage.stats"];
  expect(token).toEqual({ index: 0, name: "token 1", permissions, agents: null, rate_limit: null, budget: null });
});

test("tokens have their limits, in words that fit a table", () => {
  const at = "gateway.rpc.auth.tokens.0";
  const agents = ["a", "b", "c", "d"].map((name, n) => value(`${at}.agents.${n}`, name));
  const rate = [value(`${at}.rateLimit.maxRequests`, 20), value(`${at}.rateLimit.windowMs`, 60_000)];
  const [token] = tokensOf([value(`${at}.name`, "desk"), ...agents, ...rate]);
  const limits = { agents: ["a", "b", "c", "d"], rate_limit: { limit: 20, window_ms: 60_000 }, budget: null };
  expect(token).toMatchObject(limits);
  expect([limitsText(limits), shortLimits(limits)]).toEqual([
    "a, b, c, d · 20 per minute",
    "a, b, c +1 · 20 per minute",
  ]);
  expect(limitsText({ agents: null, rate_limit: null, budget: null })).toBe("");
  expect(rateText({ limit: 5, window_ms: 90_000 })).toBe("5 in 90 s");
});

test("tokens have their budget", () => {
  const at = "gateway.rpc.auth.tokens.0.budget";
  const values = [value(`${at}.tokens`, 20_000), value(`${at}.cost`, 2.5), value(`${at}.per`, "month")];
  const [token] = tokensOf([...values, value(`${at}.timeZone`, "UTC")]);
  expect(token?.budget).toEqual({ per: "month", time_zone: "UTC", tokens: 20_000, cost: 2.5 });
  expect(limitsText({ agents: ["a"], rate_limit: null, budget: token?.budget ?? null })).toBe(
    "a · 20,000 tokens and a cost of 2.50 per month",
  );
});

test("the budget of the form has a limit, or is none", () => {
  expect(budgetOf("20000", "", "day")).toMatchObject({ per: "day", tokens: 20_000 });
  expect(budgetOf("", "0.5", "hour")).toMatchObject({ per: "hour", cost: 0.5 });
  expect(budgetOf(" ", "", "day")).toBeUndefined();
  for (const [tokens, cost] of [
    ["0", ""],
    ["1.5", ""],
    ["ten", ""],
    ["", "0"],
    ["5", "x"],
    ["1e13", ""],
  ] as const)
    expect(budgetOf(tokens, cost, "day")).toBeNull();
});

test("the rate limit of the form is a whole number, or none", () => {
  expect(rateOf("20", "1000")).toEqual({ limit: 20, window_ms: 1_000 });
  expect(rateOf("  ", "1000")).toBeUndefined();
  for (const text of ["0", "-1", "1.5", "1e3", "ten", "1000001"]) expect(rateOf(text, "60000")).toBeNull();
});

test("a key's lifetime becomes a date, and its state a word", () => {
  const now = Date.UTC(2026, 10, 24);
  expect(expiryOf("30", now)).toBe("2026-12-24T00:00:00.000Z");
  expect(expiryOf("", now)).toBe(null);
  const state = (days: string, replaced_by: string | null = null) =>
    keyState({ expires_at: expiryOf(days, now), replaced_by }, now);
  expect([state(""), state("3"), state("-1"), state("30", "key_2"), keyState({}, now)]).toEqual([
    "active",
    "expiring",
    "expired",
    "replaced",
    "active",
  ]);
});
