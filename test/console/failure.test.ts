import { expect, test } from "vitest";
import { causeOf, failureOf } from "#console/lib/failure.ts";
import type { Step } from "#console/lib/steps.ts";

function step(name: string, detail: Step["detail"] = null): Step {
  return { at: "2026-11-21T08:00:00.000Z", name, detail };
}
const REFUSED = step("request.refused", { error: "unauthenticated", status: 401, detail: "The signature is missing." });

test.each([
  [
    "too-old",
    { age_ms: 900_000, allowed_ms: 300_000 },
    "signature too old",
    "signed 15 min ago; 5 min allowed",
    /clock/,
  ],
  ["too-new", { age_ms: -900_000, allowed_ms: 300_000 }, "signature from the future", "15 min ahead", /clock/],
  ["too-old", {}, "signature too old", "signed too long ago", /clock/],
  ["wrong", {}, "wrong signature", "does not match the body", /secret/],
  ["missing", {}, "no signature", "no complete `github` signature", /headers/],
])("a refused signature has the text and the advice for its reason: %s %j", (reason, more, cause, detail, advice) => {
  const steps = [step("request.received"), step("signature.refused", { type: "github", reason, ...more }), REFUSED];
  const failure = failureOf(steps, null);
  expect(failure?.cause).toBe(`Refused: ${cause}`);
  expect(failure?.detail).toContain(detail);
  expect(failure?.advice).toMatch(advice);
});

test("a refused token says if there was one", () => {
  const causeFor = (reason: string) => failureOf([step("token.refused", { reason }), REFUSED], null)?.cause;
  expect([causeFor("missing"), causeFor("wrong"), causeFor("new")]).toEqual([
    "Refused: no token",
    "Refused: unknown token",
    "Refused",
  ]);
});

test("any other refusal has the error, its text, and advice if there is any", () => {
  const limited = step("request.refused", { error: "rate-limited", status: 429, detail: "Too many requests." });
  expect(failureOf([limited], null)).toMatchObject({
    error: "429 rate-limited",
    detail: "Too many requests.",
  });
  expect(failureOf([limited], null)?.advice).toContain("webhooks.rateLimit");
});

test("a failed turn has its agent and the reason, without a second full stop", () => {
  const failed = step("turn.failed", {
    error: "turn-failed",
    detail: "the agent's service answered 503: The upstream pool is exhausted.",
  });
  expect(failureOf([step("turn.started"), step("turn.started"), failed], "flaky")).toEqual({
    cause: "flaky answered 503: The upstream pool is exhausted",
    error: "turn-failed",
    detail: "All 2 attempts failed.",
    advice: "",
  });
  expect(failureOf([step("turn.failed", { error: "turn-timeout" })], null)?.cause).toBe("The agent failed");
  expect(causeOf("The upstream pool is full.", "flaky")).toBe("flaky: The upstream pool is full");
  expect(causeOf("the agents met", "flaky")).toBe("flaky: the agents met");
});

test("a failed event has its attempts and its reason", () => {
  expect(failureOf([step("event.dead", { attempts: 3, reason: "no room." })], "main")).toMatchObject({
    cause: "The event failed after 3 attempts",
    detail: "no room",
  });
});

test("a skipped run has its reason, and is no failure", () => {
  expect(failureOf([step("schedule.skipped", { reason: "overlap", detail: "The turn has not ended." })], null)).toEqual(
    {
      cause: "The planned run was skipped",
      error: "overlap",
      detail: "The turn has not ended.",
      advice: "",
      isExpected: true,
    },
  );
});

test("a request without a failure has none, also after a failed attempt", () => {
  expect(failureOf([step("turn.started"), step("turn.returned"), step("turn.completed")], "main")).toBeUndefined();
  expect(failureOf([step("turn.failed"), step("event.requeued"), step("event.handled")], "main")).toBeUndefined();
});
