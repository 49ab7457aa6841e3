import { expect, it } from "vitest";
import type { Backend, BackendTurn, Chunk } from "#backends/backend.ts";
import { runTurn } from "#core/turns/run-turn.ts";
import { Stop } from "#kit/stop-signal.ts";
import { addUsage, showUsage, usageOf } from "#kit/usages.ts";

it("takes only counts from a backend, and a part of a count is at most the whole", () => {
  expect(usageOf({ input: 5, output: 3 })).toEqual({ input: 5, output: 3 });
  expect(usageOf({ input: 5, output: 3, cached: 0, reasoning: undefined, cost: 0 })).toEqual({ input: 5, output: 3 });
  const told = { input: 5, output: 3, cached: 9, reasoning: 4, cost: 2 };
  expect(usageOf(told)).toEqual({ input: 5, output: 3, more: { cached: 5, reasoning: 3, cost: 2 } });
  for (const wrong of [-1, 0.5, Number.NaN, Infinity])
    expect(usageOf({ input: 5, output: 3, cached: wrong, cost: wrong })).toEqual({ input: 5, output: 3 });
  expect(usageOf({ input: 5, output: 3, cached: "4" as unknown as number })).toEqual({ input: 5, output: 3 });
});

it("limits invented counts to sums that every store can hold", () => {
  const most = Number.MAX_SAFE_INTEGER;
  const { input, output, more } = usageOf({ input: most, output: most, cached: most, cost: most });
  expect([input, output, more?.cached, more?.cost]).toEqual([1e12, 1e12, 1e12, 1e15]);
});

it("adds up the existing fields, and changes neither operand", () => {
  const one = { input: 1, output: 2 };
  const other = { input: 3, output: 4, more: { cached: 1, reasoning: 2, cost: 3 } };
  expect(addUsage(undefined, one)).toEqual(one);
  expect(addUsage(one, one)).toEqual({ input: 2, output: 4 });
  expect(addUsage(one, other)).toEqual({ input: 4, output: 6, more: other.more });
  expect(addUsage(other, other)).toEqual({ input: 6, output: 8, more: { cached: 2, reasoning: 4, cost: 6 } });
  expect(other.more).toEqual({ cached: 1, reasoning: 2, cost: 3 });
});

it("shows a cost as a decimal number, and omits zeros", () => {
  expect(showUsage({ input: 1, output: 2 })).toEqual({ input: 1, output: 2, total: 3 });
  const more = { cached: 0, reasoning: 0, cost: 1_234_567_891 };
  expect(showUsage({ input: 1, output: 2, more })).toEqual({ input: 1, output: 2, total: 3, cost: 1.234567891 });
  expect(JSON.stringify(showUsage({ input: 0, output: 0, more: { ...more, cost: 40_600 } }))).toContain("0.0000406");
});

it("takes the backend's name of its model, and cuts a long name", async () => {
  const outcomeOf = (...chunks: Chunk[]) => {
    async function* run() {
      yield* chunks;
    }
    const watch = { alive() {}, restart() {} };
    const listener = { written: { pieces: [], length: 0 }, text() {}, note() {}, watch };
    return runTurn({ run } as Partial<Backend> as Backend, {} as BackendTurn, new Stop(), listener);
  };
  const usage = { input: 5, output: 3, cached: 2 };
  expect(await outcomeOf({ model: "small" }, { usage })).toMatchObject({
    model: "small",
    usage: { input: 5, output: 3, more: { cached: 2, reasoning: 0, cost: 0 } },
  });
  expect((await outcomeOf({ model: "x".repeat(200) })).model).toBe("x".repeat(128));
  expect((await outcomeOf({ model: "" })).model).toBeUndefined();
});
