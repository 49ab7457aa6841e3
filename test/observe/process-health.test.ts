import { expect, it } from "vitest";
import { createProcessHealth } from "#gateway/process-health.ts";

function createLag(max: number) {
  const read = () => ({ p50: 0, p99: 0, max });
  return { read, forget: async () => {}, [Symbol.dispose]: () => {} };
}

it("reports low memory and a blocked event loop", () => {
  const wrong = createProcessHealth({ isShort: () => true, lag: createLag(5.04) })();
  expect(wrong).toEqual([
    { name: "memory", status: "degraded", detail: expect.stringContaining("Memory is low") },
    { name: "eventLoop", status: "degraded", detail: expect.stringContaining("5.0 s") },
  ]);
  const right = createProcessHealth({ isShort: () => false, lag: createLag(0.9) })();
  expect(right.map(({ status, detail }) => [status, detail])).toEqual([
    ["ok", null],
    ["ok", null],
  ]);
});
