import { expect, test } from "vitest";
import { about, duration, relative } from "#console/lib/format.ts";
import { kindOfId, shortId } from "#console/lib/ids.ts";
import { type Step, stepWords } from "#console/lib/steps.ts";
import { timelineSteps } from "#test/console/timeline-steps.ts";

function step(ms: number, name: string, detail: Step["detail"] = null): Step {
  return {
    at: new Date(Date.UTC(2026, 10, 21, 8, 0, 0, ms)).toISOString(),
    name,
    detail,
  };
}

test("every step of the contract has its own text", () => {
  const names = timelineSteps();
  expect(names.length).toBeGreaterThan(30);
  for (const name of names) expect(stepWords(step(0, name)).words, name).not.toBe(name);
  expect(stepWords(step(0, "something.new")).words).toBe("something.new");
});

test("a reason inside a step loses its full stop", () => {
  const { words } = stepWords(step(0, "turn.returned", { attempt: 1, reason: "No place is free..", delay_ms: 500 }));
  expect(words).toBe("Attempt 1 failed: No place is free · next attempt in 500 ms");
  expect(stepWords(step(0, "event.dead", { attempts: 1, reason: "Why?" })).words).toBe(
    "Event failed after 1 attempt: Why?",
  );
});

test("times and ids are short", () => {
  expect([12, 3_400, 65_000, 8_040_000, 97_200_000].map(duration)).toEqual([
    "12 ms",
    "3.4 s",
    "1 m 05 s",
    "2 h 14 m",
    "1 d 03 h",
  ]);
  expect([5, 45_000, 60_000, 1_844_000, 7_300_000, 200_000_000].map(about)).toEqual([
    "5 ms",
    "45 s",
    "1 min",
    "31 min",
    "2 h",
    "2 d",
  ]);
  expect(relative(0, 120_000)).toBe("2m ago");
  expect(shortId("dlv_01M7YN0XENG6PX2VW8BN0JQS4T")).toBe("dlv_01M7YN0XE…QS4T");
  expect(kindOfId("turn_01M7YN0XEMM1B7E5S8YF3GKP2N")).toBe("turn");
  expect(kindOfId("webhook:github")).toBeUndefined();
});
