import { expect, test } from "vitest";
import { parseStreams } from "./h2load.ts";

const OUT = `starting benchmark...
Application protocol: h2c

finished in 2.00s, 10707.50 req/s, 3.21MB/s
requests: 21415 total, 21515 started, 21415 done, 21415 succeeded, 0 failed, 0 errored, 0 timeout
status codes: 21415 2xx, 0 3xx, 0 4xx, 0 5xx
`;

test("h2load's words give the rate and what was answered", () => {
  expect(parseStreams(OUT)).toEqual({ rate: 10707.5, requests: 21415, refused: 0, broken: 0 });
});

test("what h2load saw refused or broken is counted", () => {
  const out = OUT.replace("0 failed, 0 errored, 0 timeout", "9 failed, 4 errored, 3 timeout").replace("0 4xx", "2 4xx");
  expect(parseStreams(out)).toMatchObject({ refused: 2, broken: 7 });
});

test("a report that is not there, or lacks a figure, is an error", () => {
  expect(() => parseStreams("could not resolve")).toThrow("could not resolve");
  expect(() => parseStreams(OUT.replace("0 timeout", ""))).toThrow("has no timeout");
  expect(() => parseStreams(OUT.replace("req/s", ""))).toThrow("has no rate");
});
