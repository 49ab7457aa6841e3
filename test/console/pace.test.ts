import { expect, test } from "vitest";
import { paceOf } from "#console/lib/pace.ts";

const NOW = 10_000_000;
const MINUTE = 60_000;

test("turns are counted into the minutes of the last hour", () => {
  const times = [NOW - 1, NOW - 30_000, NOW - 61_000, NOW - 59 * MINUTE - 1, NOW - 61 * MINUTE, NOW + 5];
  const { spanMs, counts, perMinute } = paceOf(times, NOW, false);
  expect(spanMs).toBe(60 * MINUTE);
  expect([counts.length, counts[59], counts[58], counts[0]]).toEqual([60, 3, 1, 1]);
  expect(perMinute).toBeCloseTo(5 / 60);
});

test("where only the newest turns are known, the span begins with the oldest of them", () => {
  const times = Array.from({ length: 200 }, (_, n) => NOW - n * 10);
  const { spanMs, counts, perMinute } = paceOf(times, NOW, true);
  expect(spanMs).toBe(1_990);
  expect(counts.reduce((sum, one) => sum + one)).toBe(200);
  expect(Math.round(perMinute)).toBe(Math.round(200 / (1_990 / MINUTE)));
});

test("a gateway without turns has a pace of none", () => {
  expect(paceOf([], NOW, false).perMinute).toBe(0);
  expect(paceOf([], NOW, true).counts).toHaveLength(60);
});
