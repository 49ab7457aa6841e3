import { expect, test } from "vitest";
import { grownOf, type Resources } from "./resources.ts";

const before: Resources = { heapUsed: 20e6, rss: 90e6, files: 24, timers: 12, active: { TCPServerWrap: 1 } };

test("a small growth counts as released", () => {
  expect(grownOf(before, before)).toEqual([]);
  expect(grownOf(before, { ...before, heapUsed: 25e6, rss: 120e6, files: 30, active: {} })).toEqual([]);
});

test.each<[string, Partial<Resources>]>([
  ["the heap (MB) went from 20 to 90", { heapUsed: 90e6 }],
  ["memory (MB) went from 90 to 600", { rss: 600e6 }],
  ["open files went from 24 to 224", { files: 224 }],
  ["timers went from 12 to 99", { timers: 99 }],
  ["TCPSocketWrap went from 0 to 40", { active: { TCPServerWrap: 1, TCPSocketWrap: 40 } }],
])("reports that %s", (words, more) => {
  expect(grownOf(before, { ...before, ...more })).toEqual([words]);
});
