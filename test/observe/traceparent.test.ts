import { expect, it } from "vitest";
import { traceIdOf } from "#kit/traceparent.ts";

const TRACE = "4bf92f3577b34da6a3ce929d0e0e4736";
const SPAN = "00f067aa0ba902b7";

it.each([
  ["version 00", `00-${TRACE}-${SPAN}-01`],
  ["a later version with more", `01-${TRACE}-${SPAN}-01-more`],
  ["a later version", `cc-${TRACE}-${SPAN}-00`],
])("reads the caller's trace from %s", (_, value) => {
  expect(traceIdOf(value)).toBe(TRACE);
});

it.each([
  ["absent", undefined],
  ["empty", ""],
  ["in capitals", `00-${TRACE.toUpperCase()}-${SPAN}-01`],
  ["of version ff", `ff-${TRACE}-${SPAN}-01`],
  ["of a trace of zeros", `00-${"0".repeat(32)}-${SPAN}-01`],
  ["of a span of zeros", `00-${TRACE}-${"0".repeat(16)}-01`],
  ["too short", `00-${TRACE.slice(1)}-${SPAN}-01`],
  ["longer than version 00 is", `00-${TRACE}-${SPAN}-01-more`],
  ["followed by anything", `00-${TRACE}-${SPAN}-01 `],
  ["given twice", `00-${TRACE}-${SPAN}-01, 00-${TRACE}-${SPAN}-01`],
  ["very long", `01-${TRACE}-${SPAN}-01-${"x".repeat(10_000)}`],
])("reads no trace if traceparent is %s", (_, value) => {
  expect(traceIdOf(value)).toBeUndefined();
});
