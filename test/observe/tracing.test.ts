import { expect, it } from "vitest";
import { childTrace, parseTraceparent, traceparentOf } from "#observe/tracing.ts";

const TRACE = "4bf92f3577b34da6a3ce929d0e0e4736";
const SPAN = "00f067aa0ba902b7";

it("continues the caller's trace with a span of its own", () => {
  const trace = childTrace(`00-${TRACE}-${SPAN}-01`);
  expect(trace).toMatchObject({ traceId: TRACE, parentId: SPAN, sampled: true });
  expect(trace.spanId).toMatch(/^[0-9a-f]{16}$/);
  expect(trace.spanId).not.toBe(SPAN);
  expect(traceparentOf(trace)).toBe(`00-${TRACE}-${trace.spanId}-01`);
});

it("keeps the caller's choice not to sample", () => {
  expect(traceparentOf(childTrace(`00-${TRACE}-${SPAN}-00`))).toMatch(/-00$/);
  expect(childTrace(`00-${TRACE}-${SPAN}-02`).sampled).toBe(false);
  expect(childTrace(`00-${TRACE}-${SPAN}-03`).sampled).toBe(true);
});

it("reads a later version as version 00", () => {
  expect(parseTraceparent(`01-${TRACE}-${SPAN}-01-more`)).toMatchObject({ traceId: TRACE });
  expect(parseTraceparent(`cc-${TRACE}-${SPAN}-01`)).toMatchObject({ traceId: TRACE });
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
])("begins a new trace where traceparent is %s", (_, value) => {
  const trace = childTrace(value);
  expect(trace.traceId).toMatch(/^[0-9a-f]{32}$/);
  expect(trace.traceId).not.toBe(TRACE);
  expect(trace).toMatchObject({ parentId: undefined, sampled: false });
});

it("never makes the same id twice", () => {
  const ids = Array.from({ length: 5000 }, () => childTrace(undefined)).flatMap(({ traceId, spanId }) => [
    traceId,
    spanId,
  ]);
  expect(new Set(ids).size).toBe(10_000);
});
