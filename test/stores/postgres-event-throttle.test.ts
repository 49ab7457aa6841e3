import { expect, it } from "vitest";
import { createEventThrottle } from "#store/postgres/event-throttle.ts";

it("delays events only if more are waiting than are delivered at once, and while a delivery is in progress", () => {
  let [waiting, isBeating, time] = [1_500, false, 0];
  const pauseAfter = createEventThrottle({
    waiting: () => waiting,
    isBeating: () => isBeating,
    time: () => time,
  });
  for (let n = 0; n < 100; n++) expect(pauseAfter(4)).toBe(0);
  isBeating = true;
  expect(pauseAfter(4)).toBeCloseTo(16, 1);
  isBeating = false;
  time = 2_000;
  expect(pauseAfter(4)).toBeCloseTo(16, 1);
  // A slow transaction delays events no longer than a usual one.
  waiting = 1_000;
  expect(pauseAfter(84)).toBeLessThan(20);
  waiting = 400;
  expect(pauseAfter(4)).toBe(0);
  waiting = 1_500;
  time = 6_000;
  expect(pauseAfter(4)).toBe(0);
});
