import { setTimeout as pause } from "node:timers/promises";
import { expect, it } from "vitest";
import { createLoopLag } from "#observe/loop-lag.ts";

function block(ms: number): void {
  const end = performance.now() + ms;
  while (performance.now() < end);
}

it("F27: reports how long the event loop was blocked, until it is reset", async () => {
  using lag = createLoopLag();
  // Its first beat.
  await pause(50);
  block(400);
  await expect.poll(() => lag.read().max).toBeGreaterThan(0.3);
  // The latest delay is not recorded yet.
  block(1_000);
  await lag.forget();
  expect(lag.read().max).toBeLessThan(0.9);
});
