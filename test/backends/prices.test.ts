import { describe, expect, it } from "vitest";
import { added, costOf, priced } from "#backends/model/spending.ts";

const PRICE = { input: 0.25, cachedInput: 0.025, output: 2 };

describe("the cost of tokens", () => {
  it("is in billionths, for input, cached input and output", () => {
    expect(costOf({ input: 1_000_000, output: 0 }, PRICE)).toBe(250_000_000);
    expect(costOf({ input: 0, output: 1_000_000 }, PRICE)).toBe(2_000_000_000);
    expect(costOf({ input: 1_200, output: 80, cached: 1_024 }, PRICE)).toBe(229_600);
    // Part of the output, and included in its price.
    expect(costOf({ input: 0, output: 80, reasoning: 70 }, PRICE)).toBe(160_000);
  });

  it("uses the input price for cached input without its own price", () => {
    const price = { ...PRICE, cachedInput: undefined };
    expect(costOf({ input: 100, output: 0, cached: 60 }, price)).toBe(costOf({ input: 100, output: 0 }, price));
    expect(costOf({ input: 100, output: 0, cached: 60 }, { ...PRICE, cachedInput: 0 })).toBe(10_000);
  });

  it("is exact for prices that no float can represent, and rounded once", () => {
    expect(costOf({ input: 1, output: 0 }, { input: 0.0375, cachedInput: undefined, output: 0 })).toBe(38);
    expect(costOf({ input: 3, output: 0 }, { input: 0.0375, cachedInput: undefined, output: 0 })).toBe(113);
    expect(costOf({ input: 1_000_003, output: 0 }, { input: 0.1, cachedInput: undefined, output: 0 })).toBe(
      100_000_300,
    );
    expect(costOf({ input: 1, output: 1 }, { input: 0.000001, cachedInput: undefined, output: 0.0004 })).toBe(0);
  });

  it("is added up without an error", () => {
    let sum = priced({ input: 0, output: 0 }, PRICE);
    for (let n = 0; n < 1_000; n++) sum = added(sum, priced({ input: 7, output: 3, cached: 2 }, PRICE));
    expect(sum.cost).toBe(1_000 * (5 * 250 + 2 * 25 + 3 * 2_000));
  });

  it("counts at most the input as cached, and is always a whole number", () => {
    expect(costOf({ input: 10, output: 0, cached: 100 }, PRICE)).toBe(250);
    const most = { input: Number.MAX_SAFE_INTEGER, output: Number.MAX_SAFE_INTEGER };
    expect(costOf(most, { input: 1e6, cachedInput: undefined, output: 1e6 })).toBe(Number.MAX_SAFE_INTEGER);
  });

  it("is unknown for a model without a price", () => {
    expect(priced({ input: 5, output: 5 }, undefined)).toEqual({ input: 5, output: 5 });
  });
});
