import { expect, test } from "vitest";
import { changeOf, csvOf, rowsOf, topOf, withGaps } from "#console/lib/usage-rows.ts";

function counts(total: number) {
  return {
    messages: 1,
    turns: { completed: 1, failed: 0, cancelled: 0 },
    attempts: 1,
    tokens: { input: total - 1, output: 1, total },
    latencyMs: { mean: 4.2 },
  };
}

test("groups are rows, the largest first, and days keep their order", () => {
  const groups = [
    { key: "a", counts: counts(3) },
    { key: "b", counts: counts(9) },
  ];
  expect(rowsOf(groups, false).map(({ key }) => key)).toEqual(["b", "a"]);
  expect(rowsOf(groups, true).map(({ key }) => key)).toEqual(["a", "b"]);
});

test("days without use are rows of zeros", () => {
  const rows = rowsOf([{ key: "2026-11-21T00:00:00.000Z", counts: counts(5) }], true);
  const filled = withGaps(rows, Date.UTC(2026, 10, 20, 12), Date.UTC(2026, 10, 23), "day");
  expect(filled.map(({ key, total }) => [key.slice(8, 10), total])).toEqual([
    ["20", 0],
    ["21", 5],
    ["22", 0],
  ]);
});

test("an axis ends at a round number, and a change has a sign", () => {
  expect([0, 1, 7, 2_472, 5_001].map(topOf)).toEqual([1, 1, 10, 5_000, 10_000]);
  expect([changeOf(3, 2), changeOf(1, 2), changeOf(2, 2), changeOf(2, 0), changeOf(2, undefined)]).toEqual([
    "+50 %",
    "−50 %",
    "±0 %",
    undefined,
    undefined,
  ]);
});

test("a CSV file quotes what it must, and no spreadsheet runs it", () => {
  const [row] = rowsOf([{ key: '=HYPERLINK("x")', counts: counts(2) }], false);
  const [head, line] = csvOf(row ? [row] : [], "agent").split("\r\n");
  expect(head).toBe("agent,messages,completed,failed,cancelled,input,output,total,cost,latencyMs");
  expect(line).toBe(`"'=HYPERLINK(""x"")",1,1,0,0,1,1,2,,4.2`);
});
