import { expect, it } from "vitest";
import { createProcessHealth } from "#gateway/process-health.ts";

const createLag = (max: number) => {
  let reads = 0;
  const read = () => {
    reads++;
    return { p50: 0, p99: 0, max };
  };
  return { read, isMeasured: () => reads > 0, forget: async () => {}, [Symbol.dispose]: () => {}, count: () => reads };
};

it("names memory that is short and an event loop that stood still", () => {
  const wrong = createProcessHealth({ isShort: () => true, lag: createLag(5.04) })(true);
  expect(wrong).toEqual([
    { name: "memory", status: "degraded", detail: expect.stringContaining("Memory is short") },
    { name: "eventLoop", status: "degraded", detail: expect.stringContaining("5.0 s") },
  ]);
  const right = createProcessHealth({ isShort: () => false, lag: createLag(0.9) })(true);
  expect(right.map(({ status, detail }) => [status, detail])).toEqual([
    ["ok", null],
    ["ok", null],
  ]);
});

it("begins to watch the event loop when somebody asks, and goes on with it", () => {
  const lag = createLag(0);
  const look = createProcessHealth({ isShort: () => false, lag });
  expect(look(false).map(({ name }) => name)).toEqual(["memory"]);
  expect(lag.count()).toBe(0);
  look(true);
  expect(look(false).map(({ name }) => name)).toEqual(["memory", "eventLoop"]);
});
