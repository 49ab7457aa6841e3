import { describe, expect, it } from "vitest";
import { Breaker } from "#backends/breaker.ts";
import { BackendError } from "#kit/errors.ts";
import { Stop } from "#kit/stop-signal.ts";
import { createManualClock } from "#test/harness/clock.ts";

const LASTING = new BackendError("no");
function failureAfter(retryAfterMs: number) {
  return new BackendError("no", { retryable: true, retryAfterMs });
}
const isKeptBack = "it has failed several times in a row and gets no requests for a while";

describe("a breaker", () => {
  const open = () => {
    const clock = createManualClock();
    const breaker = new Breaker(clock);
    const begin = (stop = new Stop()) => breaker.begin("it", stop);
    const fail = (times: number, error: unknown = failureAfter(0)) => {
      const calls = Array.from({ length: times }, () => begin());
      for (const call of calls) call.failed(error);
    };
    return { clock, breaker, begin, fail };
  };

  it("opens after five failures in a row, and an answer between them resets the count", () => {
    const { breaker, begin, fail } = open();
    fail(4);
    begin().answered();
    fail(4);
    begin().left();
    expect(breaker.restMs()).toBe(0);
    fail(1);
    expect(breaker.restMs()).toBe(5_000);
    expect(() => begin()).toThrow(isKeptBack);
  });

  it("allows one call after its pause, closes if it succeeds, and doubles the pause if it fails", async () => {
    const { clock, breaker, begin, fail } = open();
    fail(5);
    await clock.advance(5_000);
    expect([breaker.restMs(), breaker.restMs()]).toEqual([0, 0]);
    const first = begin();
    expect(breaker.restMs()).toBe(1_000);
    expect(() => begin()).toThrow(isKeptBack);
    first.failed(failureAfter(0));
    expect(breaker.restMs()).toBe(10_000);
    await clock.advance(10_000);
    begin().left();
    begin().answered();
    expect([begin(), begin()]).toHaveLength(2);
  });

  it("does not extend its pause for calls that were in progress, and pauses as long as requested, up to a minute", () => {
    const { breaker, begin, fail } = open();
    const late = Array.from({ length: 50 }, () => begin());
    fail(4);
    fail(1, failureAfter(20_000));
    for (const call of late) call.failed(failureAfter(0));
    expect(breaker.restMs()).toBe(20_000);
    const other = open();
    other.fail(5, failureAfter(86_400_000));
    expect(other.breaker.restMs()).toBe(60_000);
  });

  it.each([
    ["a failure", undefined, new Error("no"), 5_000],
    ["a refusal", undefined, LASTING, 0],
    ["silence", "silence", LASTING, 5_000],
    ["no answer in time", "no-answer", LASTING, 5_000],
    ["a cancelled call", "cancelled", new Error("no"), 0],
  ])("counts %s once, whether its end is reported or it is abandoned", (_, reason, error, restMs) => {
    for (const isLeft of [false, true]) {
      const { breaker, begin } = open();
      const calls = Array.from({ length: 5 }, () => {
        const stop = new Stop();
        return { stop, call: begin(stop) };
      });
      for (const { stop, call } of calls) {
        if (reason !== undefined) stop.abort(reason);
        if (!isLeft || reason === undefined) expect(call.failed(error)).toBe(reason ?? error);
        call.left();
        call.answered();
      }
      expect(breaker.restMs()).toBe(restMs);
    }
  });

  it("starts no call whose signal was aborted before", () => {
    const stop = new Stop();
    stop.abort("cancelled");
    expect(() => open().begin(stop)).toThrow("cancelled");
  });
});
