import { expect, test } from "vitest";
import { readOptions } from "./options.ts";

const read = (...args: string[]) => readOptions(args, () => {});

test("without options it measures all gates, in rounds worth quoting", () => {
  expect(read()).toMatchObject({
    only: undefined,
    seconds: 6,
    rounds: 3,
    short: false,
    json: "bench-results/latest.json",
  });
});

test("--short looks once; --seconds and --rounds still win", () => {
  expect(read("--short")).toMatchObject({ seconds: 2, rounds: 1 });
  expect(read("--short", "--rounds", "2", "--seconds", "4")).toMatchObject({ seconds: 4, rounds: 2 });
});

test("--only takes gates in any case", () => {
  expect(read("--only", "p4, P13")).toMatchObject({ only: new Set(["P4", "P13"]) });
});

test("what would not end by itself is refused", () => {
  for (const value of ["0", "-1", "3600", "1.5", "soon"])
    expect(() => read(`--seconds=${value}`)).toThrow("give 1 to 60");
});
