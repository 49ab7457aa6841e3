import { expect, test } from "vitest";
import { showNumber, tableOf } from "./table.ts";

test("numbers show three digits that count, and thousands apart", () => {
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
