import { expect, test } from "vitest";
import { parseReport, requireClean, runLoad, unlessIdle } from "./load.ts";

const OUT = `Running 6s test @ http://127.0.0.1:1/
  1 threads and 50 connections
Requests/sec:   3612.44

{"requests":21000,"micros":6000000,"refused":0,"broken":0,"p50":13000,"p99":45400,"max":90000}
`;

test("the load's report is the line of JSON in what wrk prints", () => {
  expect(parseReport(OUT)).toEqual({
    rate: 3500,
    requests: 21000,
    refused: 0,
    broken: 0,
    p50: 13000,
    p99: 45400,
    max: 90000,
  });
});

test("a report that is not there, or lacks a figure, is an error", () => {
  expect(() => parseReport("unable to connect")).toThrow("unable to connect");
  expect(() => parseReport('{"requests":1}')).toThrow("has no micros");
});

test("a load with refused or broken requests does not count", () => {
  const load = { ...parseReport(OUT), cpu: 1, busy: 1, disturbed: 0 };
  expect(() => requireClean(load, "P4")).not.toThrow();
  expect(() => requireClean({ ...load, refused: 3 }, "P4")).toThrow("3 of 21000 requests were refused");
  expect(() => requireClean({ ...load, broken: 1 }, "P4")).toThrow("1 broke");
});

test("a load goes to this machine only", async () => {
  const wish = { url: "http://192.0.2.1/", pid: process.pid, token: "t", seconds: 1, sessions: 0, seed: 1 };
  await expect(runLoad(wish)).rejects.toThrow("127.0.0.1 only");
});

test("a ratio to a server that was not kept busy is not judged", () => {
  const load = { ...parseReport(OUT), cpu: 1, disturbed: 0 };
  const figure = { gate: "P4", figure: "chat", ratio: 0.2, held: true };
  expect(unlessIdle(figure, [{ ...load, busy: 0.97 }])).toBe(figure);
  const unjudged = unlessIdle(
    figure,
    [0.5, 0.6, 0.99].map((busy) => ({ ...load, busy })),
  );
  expect(unjudged).toMatchObject({ ratio: 0.2, note: expect.stringContaining("only 60 % busy") });
  expect(unjudged).not.toHaveProperty("held");
});
