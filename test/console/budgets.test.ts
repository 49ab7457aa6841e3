import { expect, test } from "vitest";
import { barsOf, scopeOf } from "#console/lib/budgets.ts";
import type { Budget } from "#generated/clients/typescript/src/rpc-types.ts";

const BUDGET: Budget = {
  name: "daily",
  per: "day",
  timeZone: "UTC",
  agents: null,
  keys: null,
  sources: null,
  tokens: { used: 1_998, reserved: 100, limit: 1_500, granted: 500 },
  cost: { used: 0, reserved: 0, limit: 25, granted: 0 },
  estimatedTokens: 0,
  startsAt: "2026-11-21T00:00:00.000Z",
  resetsAt: "2026-11-22T00:00:00.000Z",
  state: "warning",
  // biome-ignore lint/suspicious/noThenProperty: the name of the contract.
  then: "refuse",
};

test("each limit has a bar: used, reserved, and with the grants at most 100 %", () => {
  expect(barsOf(BUDGET)).toEqual([
    {
      unit: "tokens",
      words: "1,998 of 2,000 tokens",
      more: "100 reserved · 500 granted",
      usedPercent: expect.closeTo(99.9),
      reservedPercent: expect.closeTo(0.1),
      percent: 99,
    },
    { unit: "cost", words: "0.00 of 25.00 (cost)", more: "", usedPercent: 0, reservedPercent: 0, percent: 0 },
  ]);
  const spent = { ...BUDGET, tokens: { used: 24, reserved: 0, limit: 10, granted: 0 }, cost: null };
  expect(barsOf(spent)).toMatchObject([{ usedPercent: 100, reservedPercent: 0, percent: 240 }]);
});

test("the turns of a budget are named, a few of each", () => {
  expect(scopeOf(BUDGET)).toBe("each day");
  const narrow = {
    agents: ["a", "b", "c", "d"],
    keys: ["ci"],
    sources: ["webhook" as const],
    timeZone: "Europe/Berlin",
  };
  expect(scopeOf({ ...BUDGET, ...narrow })).toBe("each day (Europe/Berlin) · a, b, c +1 · ci · webhook");
  expect(scopeOf({ ...BUDGET, name: "key:ci", keys: ["ci"], sources: ["rest"] })).toBe("each day");
});
