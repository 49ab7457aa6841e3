import { expect, test } from "vitest";
import { readOptions } from "./options.ts";
import { SOAK_GATES, slopeOf } from "./soak.ts";

const every = (ms: number, values: readonly number[]) => values.map((value, n) => ({ atMs: n * ms, value }));

test("a slope is the growth of a minute", () => {
  expect(slopeOf(every(60_000, [100, 103, 106]))).toBeCloseTo(3);
  expect(slopeOf(every(1_000, [100, 100.5]))).toBeCloseTo(30);
  expect(slopeOf(every(30_000, [8, 7, 6, 5]))).toBeCloseTo(-2);
});

test("what goes up and down again, as memory does between collections, has no slope", () => {
  const teeth = Array.from({ length: 420 }, (_, n) => 200 + (n % 7) * 10);
  expect(Math.abs(slopeOf(every(1_000, teeth)))).toBeLessThan(0.2);
});

test("a leak shows below such teeth", () => {
  const leak = Array.from({ length: 420 }, (_, n) => 200 + (n % 7) * 10 + n / 30);
  expect(slopeOf(every(1_000, leak))).toBeGreaterThan(1.8);
  expect(slopeOf(every(1_000, leak))).toBeLessThan(2.2);
});

test("a slope needs two values at two times", () => {
  expect(() => slopeOf([{ atMs: 0, value: 1 }])).toThrow("two values");
  expect(() => slopeOf(every(0, [1, 2]))).toThrow("two times");
});

test("ten minutes are run only for a gate that is named", () => {
  const lackOf = (...args: string[]) => {
    const options = readOptions(args, () => {});
    if (options === "help") throw new Error("no help was asked for");
    return SOAK_GATES.map(({ lack }) => lack?.(options));
  };
  for (const lack of lackOf()) expect(lack).toBeDefined();
  for (const lack of lackOf("--only", "P16")) expect(lack ?? "").not.toContain("11 minutes");
});
