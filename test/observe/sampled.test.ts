import { expect, it } from "vitest";
import { createSampled } from "#gateway/sampled.ts";
import { createManualClock } from "#test/harness/clock.ts";

it("reads a value at most once in ten seconds, and once for concurrent scrapes", async () => {
  const clock = createManualClock();
  let reads = 0;
  const sampled = createSampled(clock, async () => ++reads);
  expect(sampled.value()).toBeUndefined();
  await Promise.all([sampled.refresh(), sampled.refresh()]);
  await sampled.refresh();
  expect(sampled.value()).toBe(1);
  await clock.advance(10_000);
  await sampled.refresh();
  expect(sampled.value()).toBe(2);
  expect(clock.timers()).toBe(0);
});

it("keeps the last value while the store fails or does not answer, and then delays a scrape only for a moment", async () => {
  const clock = createManualClock();
  let read = async () => 1;
  const sampled = createSampled(clock, () => read());
  await sampled.refresh();
  await clock.advance(10_000);
  read = () => Promise.reject(new Error("away"));
  await sampled.refresh();
  expect(sampled.value()).toBe(1);
  let answer = (_: number) => {};
  read = () => new Promise((resolve) => (answer = resolve));
  const waiting = sampled.refresh();
  await clock.advance(500);
  await waiting;
  expect(sampled.value()).toBe(1);
  answer(2);
  await clock.settle();
  expect(sampled.value()).toBe(2);
});
