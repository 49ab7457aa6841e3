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

test("the step of an unmatched request has the pair of each mapping that failed", () => {
  const event = { mapping: "push", path: "headers.x-github-event", expected: ["push", "tag"] };
  const state = { mapping: "state", path: "body.state", expected: ["open"] };
  const tried = [{ ...event, found: null }, { ...state, found: "closed" }, state];
  expect(stepWords(step(0, "mapping.tried", { matched: null, tried, untold: 2 }))).toMatchObject({
    words: "No mapping matched",
    body: [
      'push: headers.x-github-event must be "push" or "tag", and is missing',
      'state: body.state must be "open", and is "closed"',
      'state: body.state must be "open", and is not',
      "and 2 other mappings",
    ].join("\n"),
  });
  expect(stepWords(step(0, "mapping.tried", { matched: "alert", tried, untold: 0 })).body).toBeUndefined();
});

test("the steps of a burst have the number of its requests, the wait that is left, and the other request", () => {
  const id = "dlv_01M7YN0XENG6PX2VW8BN0JQS4T";
  const closes_at = step(30_000, "").at;
  expect(stepWords(step(0, "group.opened", { closes_at })).words).toBe(
    "Turn waits 30 s for more requests with the same key",
  );
  expect(stepWords(step(10_000, "group.joined", { delivery_id: id, requests: 2, closes_at }))).toMatchObject({
    words: "Request 2 joined · turn waits 20 s more",
    link: id,
  });
  expect(stepWords(step(30_000, "group.closed", { requests: 2 })).words).toBe("Wait ended with 2 requests");
  expect(stepWords(step(0, "request.coalesced", { turn_id: "turn_1", delivery_id: id, requests: 2 }))).toMatchObject({
    words: "Joined an open turn as request 2",
    link: id,
  });
  expect(stepWords(step(0, "message.rendered", { mapping: "pr", without: ["body.number"] })).words).toBe(
    "Message from mapping `pr` · no value at `body.number`",
  );
});

test("the steps of a schedule have its planned times and the reason", () => {
  const planned_at = step(0, "").at;
  expect(stepWords(step(12, "schedule.fired", { planned_at })).words).toBe(
    "Started by the schedule, 12 ms after the planned time",
  );
  expect(stepWords(step(0, "schedule.requested", { by: "console" })).words).toBe("Run requested by console");
  expect(
    stepWords(step(0, "schedule.skipped", { planned_at, reason: "overlap", detail: "The turn has not ended." })).words,
  ).toBe("Planned run skipped: The turn has not ended");
  const missed = { planned_at, first_at: "2026-11-21T06:00:00.000Z", last_at: "2026-11-21T08:00:00.000Z" };
  expect(stepWords(step(0, "schedule.missed", { ...missed, count: 3 }))).toMatchObject({
    words: "3 planned runs missed",
    body: "first 2026-11-21T06:00:00.000Z\nlast  2026-11-21T08:00:00.000Z",
  });
  expect(stepWords(step(0, "schedule.missed", { ...missed, count: 1 }))).toMatchObject({
    words: "1 planned run missed",
    body: "2026-11-21T06:00:00.000Z",
  });
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
