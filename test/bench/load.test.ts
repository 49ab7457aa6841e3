import { expect, test } from "vitest";
import { statusCall } from "./calls.ts";
import { parseReport, parseStreams, requireClean, runLoad, runStreams, unlessIdle, withCost } from "./load.ts";
import { runSockets } from "./sockets.ts";

const OUT = `Running 6s test @ http://127.0.0.1:1/
  1 threads and 50 connections
Requests/sec:   3612.44

{"requests":21000,"micros":6000000,"refused":0,"broken":0,"p50":13000,"p99":45400,"max":90000}
`;

test("a load with refused or broken requests does not count", () => {
  const load = { ...parseReport(OUT), cpu: 1, busy: 1, disturbed: 0 };
  expect(() => requireClean(load, "P4")).not.toThrow();
  expect(() => requireClean({ ...load, refused: 3 }, "P4")).toThrow("3 of 21000 requests were refused");
  expect(() => requireClean({ ...load, broken: 1 }, "P4")).toThrow("1 broke");
});

test("a load goes to this machine only", async () => {
  const url = "http://192.0.2.1/";
  const wish = { url, pid: process.pid, call: statusCall(), seconds: 1 };
  await expect(runLoad({ ...wish, sessions: 0, seed: 1 })).rejects.toThrow("127.0.0.1 only");
  await expect(runStreams({ ...wish, connections: 1, streams: 1 })).rejects.toThrow("127.0.0.1 only");
  await expect(runSockets(wish, { connections: 1, inFlight: 1 }, 1)).rejects.toThrow("127.0.0.1 only");
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

test("what a load cost its server is CPU time, by request and by time", async () => {
  const found = await withCost(process.pid, async () => {
    const { user } = process.cpuUsage();
    while (process.cpuUsage().user < user + 100_000);
    return { requests: 100 };
  });
  expect(found.requests).toBe(100);
  // In steps of 10 ms.
  expect(found.cpu).toBeGreaterThan(100);
  expect(found.cpu).toBeLessThan(10_000);
  expect(found.busy).toBeGreaterThan(0);
});

const STREAMS_OUT = `starting benchmark...
Application protocol: h2c

finished in 2.00s, 10707.50 req/s, 3.21MB/s
requests: 21415 total, 21515 started, 21415 done, 21415 succeeded, 0 failed, 0 errored, 0 timeout
status codes: 21415 2xx, 0 3xx, 0 4xx, 0 5xx
`;

test("what h2load saw refused or broken is counted", () => {
  const out = STREAMS_OUT.replace("0 failed, 0 errored, 0 timeout", "9 failed, 4 errored, 3 timeout").replace(
    "0 4xx",
    "2 4xx",
  );
  expect(parseStreams(out)).toMatchObject({ refused: 2, broken: 7 });
});
