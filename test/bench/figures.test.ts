import { expect, test } from "vitest";
import { compare, holds, median, ratiosOf, showNumber, tableOf } from "./figures.ts";

test("a median is the middle value, in whatever order", () => {
  expect(median([9, 1, 5])).toBe(5);
  expect(median([10, 9, 100])).toBe(10);
  expect(median([4])).toBe(4);
});

test("a median of an even count is between the two middle values", () => {
  expect(median([1, 2, 4, 100])).toBe(3);
});

test("ratios are calculated round by round", () => {
  expect(ratiosOf([10, 30], [100, 60])).toEqual([0.1, 0.5]);
  expect(() => ratiosOf([1], [1, 2])).toThrow("as many rounds");
});

test("a bound is met at its own value, and never by a value that is not a number", () => {
  expect(holds(0.15, { atLeast: 0.15 })).toBe(true);
  expect(holds(0.149, { atLeast: 0.15 })).toBe(false);
  expect(holds(300, { atMost: 300 })).toBe(true);
  expect(holds(301, { atMost: 300 })).toBe(false);
  expect(holds(Number.NaN, { atMost: 300 })).toBe(false);
  expect(holds(Number.NaN, { atLeast: 0 })).toBe(false);
});

test("a comparison is the median of the ratios, not the ratio of the medians", () => {
  const row = { gate: "P4", figure: "chat", bound: { atLeast: 0.45 } };
  const figure = compare([10, 50, 90], [100, 100, 100], row);
  expect(figure).toMatchObject({ value: 50, ratio: 0.5, rounds: [0.1, 0.5, 0.9], held: true });
  expect(compare([10, 50, 90], [20, 500, 200], row)).toMatchObject({ value: 50, ratio: 0.45, held: true });
});

test("numbers have three significant digits and separated thousands", () => {
  expect(showNumber(0.15234)).toBe("0.152");
  expect(showNumber(28.44)).toBe("28.4");
  expect(showNumber(300)).toBe("300");
  expect(showNumber(999.6)).toBe("1 000");
  expect(showNumber(45120.4)).toBe("45 120");
  expect(showNumber(1000000)).toBe("1 000 000");
  expect(showNumber(Number.NaN)).toBe("NaN");
});

test("a table has a line for each figure and one below for its note", () => {
  const bound = { atLeast: 0.15, what: "x bare" };
  const table = tableOf([
    {
      gate: "P4",
      figure: "chat",
      value: 7812.3,
      unit: "requests/s",
      ratio: 0.1812,
      bound,
      held: true,
      note: "bare 43100",
    },
    { gate: "P10", figure: "session", value: 529, unit: "bytes", bound: { atMost: 450 }, held: false },
    { gate: "P12", figure: "page", note: "not measured: one core" },
  ]);
  expect(table.split("\n")).toEqual([
    "gate  figure   measured          ratio  bound           held",
    "----  -------  ----------------  -----  --------------  ----",
    "P4    chat     7 812 requests/s  0.181  >= 0.15 x bare  yes",
    "      bare 43100",
    "P10   session  529 bytes                <= 450          NO",
    "P12   page     -                                        -",
    "      not measured: one core",
    "",
  ]);
});
