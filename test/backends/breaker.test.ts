import { describe, expect, it } from "vitest";
import { createBreaker, verdictOf } from "#backends/breaker.ts";
import { BackendError } from "#kit/errors.ts";
import { createManualClock } from "#test/harness/clock.ts";

describe("a breaker", () => {
  const open = () => {
    const clock = createManualClock();
    const breaker = createBreaker(clock);
    const fail = (times: number) => {
      for (let n = 0; n < times; n++) breaker.tell("failed");
    };
    return { clock, breaker, fail };
  };

  it("opens after five failures in a row, and one answer between them counts from the beginning", () => {
    const { breaker, fail } = open();
    fail(4);
    breaker.tell("answered");
    fail(4);
    breaker.tell("unknown");
    expect(breaker.wait()).toBe(0);
    fail(1);
    expect(breaker.wait()).toBe(5_000);
  });

  it("lets one call try after its rest, closes with its answer, and rests twice as long after its failure", async () => {
    const { clock, breaker, fail } = open();
    fail(5);
    await clock.advance(5_000);
    expect(breaker.wait()).toBe(0);
    expect(breaker.wait()).toBeGreaterThan(0);
    fail(1);
    expect(breaker.wait()).toBe(10_000);
    await clock.advance(10_000);
    expect(breaker.wait()).toBe(0);
    breaker.tell("unknown");
    expect(breaker.wait()).toBe(0);
    breaker.tell("answered");
    expect([breaker.wait(), breaker.wait()]).toEqual([0, 0]);
  });

  it("says how long it rests to whoever asks, and lets none through for that", async () => {
    const { clock, breaker, fail } = open();
    expect(breaker.restMs()).toBe(0);
    fail(5);
    expect(breaker.restMs()).toBe(5_000);
    await clock.advance(5_000);
    expect([breaker.restMs(), breaker.restMs(), breaker.wait()]).toEqual([0, 0, 0]);
    expect(breaker.restMs()).toBe(1_000);
    breaker.tell("answered");
    expect(breaker.restMs()).toBe(0);
  });

  it("rests no longer for calls that were under way when it opened, and as long as it was asked to, up to a minute", () => {
    const { breaker, fail } = open();
    fail(4);
    breaker.tell("failed", 20_000);
    fail(50);
    expect(breaker.wait()).toBe(20_000);
    const other = createBreaker(createManualClock());
    for (let n = 0; n < 5; n++) other.tell("failed", 86_400_000);
    expect(other.wait()).toBe(60_000);
  });

  it("takes a refusal for an answer, a backend that did not begin in time for a failure, and a cancelled call for neither", () => {
    const signal = new AbortController().signal;
    expect(verdictOf(new BackendError("no", { retryable: true }), signal)).toBe("failed");
    expect(verdictOf(new BackendError("no"), signal)).toBe("answered");
    expect(verdictOf(new Error("no"), AbortSignal.abort("no-answer"))).toBe("failed");
    expect(verdictOf(new Error("no"), AbortSignal.abort("cancelled"))).toBe("unknown");
  });
});
