import { expect, test } from "vitest";
import { grownOf, type Resources } from "./resources.ts";

const before: Resources = { heapUsed: 20e6, rss: 90e6, files: 24, active: { Timeout: 3, TCPServerWrap: 1 } };

test("what went up a little, or down, is given back", () => {
  expect(grownOf(before, before)).toEqual([]);
  expect(grownOf(before, { ...before, heapUsed: 25e6, rss: 120e6, files: 30, active: {} })).toEqual([]);
});

test.each<[string, Partial<Resources>]>([
  ["the heap (MB) went from 20 to 90", { heapUsed: 90e6 }],
  ["memory (MB) went from 90 to 600", { rss: 600e6 }],
  ["open files went from 24 to 224", { files: 224 }],
  ["timers went from 3 to 40", { active: { Timeout: 40 } }],
])("tells when %s", (words, more) => {
  expect(grownOf(before, { ...before, ...more })).toEqual([words]);
});
