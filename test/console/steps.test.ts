import { expect, test } from "vitest";
import { duration, relative } from "#console/lib/format.ts";
import { kindOfId, shortId } from "#console/lib/ids.ts";
import { phasesOf, type Step, stepWords } from "#console/lib/steps.ts";
import { timelineSteps } from "#test/console/timeline-steps.ts";

function step(ms: number, name: string, detail: Step["detail"] = null): Step {
  return {
    at: new Date(Date.UTC(2026, 10, 21, 8, 0, 0, ms)).toISOString(),
    name,
    detail,
  };
}

test("a timeline is cut into phases, each up to its last step", () => {
  const phases = phasesOf([
    step(0, "request.received"),
    step(1, "signature.accepted"),
    step(3, "mapping.tried"),
    step(4, "turn.queued"),
    step(24, "turn.started"),
    step(124, "turn.completed"),
    step(324, "announcement.delivered"),
  ]);
  expect(phases.map(({ name, ms }) => `${name} ${ms}`)).toEqual([
    "let in 1",
    "matched 3",
    "waited 20",
    "ran 100",
    "answered 200",
  ]);
  expect(phasesOf([])).toEqual([]);
});

test("every step that the contract names has words of its own", () => {
  const names = timelineSteps();
  expect(names.length).toBeGreaterThan(30);
  for (const name of names) expect(stepWords(step(0, name)).words, name).not.toBe(name);
  expect(stepWords(step(0, "something.new")).words).toBe("something.new");
});

test("times and ids are short", () => {
  expect([12, 3_400, 65_000, 8_040_000, 97_200_000].map(duration)).toEqual([
    "12 ms",
    "3.4 s",
    "1 m 05 s",
    "2 h 14 m",
    "1 d 03 h",
  ]);
  expect(relative(0, 120_000)).toBe("2m ago");
  expect(shortId("dlv_01M7YN0XENG6PX2VW8BN0JQS4T")).toBe("dlv_01M7YN0XE…QS4T");
  expect(kindOfId("turn_01M7YN0XEMM1B7E5S8YF3GKP2N")).toBe("turn");
  expect(kindOfId("webhook:github")).toBeUndefined();
});
