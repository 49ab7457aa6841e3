import { expect, it } from "vitest";
import { retryAfterOf } from "#outbound/retry-after.ts";

const NOW = Date.parse("2026-11-29T10:00:00Z");
const YEAR_MS = 31_536_000_000;

it.each([
  ["7", 7_000],
  ["0", 0],
  ["1000000000", YEAR_MS],
  ["4000000000", YEAR_MS],
  ["9".repeat(100), YEAR_MS],
  ["Sun, 29 Nov 2026 10:00:30 GMT", 30_000],
  ["Sun, 29 Nov 2026 09:00:00 GMT", 0],
  ["-5", undefined],
  ["soon", undefined],
])("reads a Retry-After of %s", (header, ms) => {
  expect(retryAfterOf({ "retry-after": header }, NOW)).toBe(ms);
});
