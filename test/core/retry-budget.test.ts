import { describe, expect, it } from "vitest";
import type { Backend } from "#backends/backend.ts";
import { BackendError } from "#kit/errors.ts";
import { retryAfterOf } from "#outbound/retry-after.ts";
import { startCore } from "./start-core.ts";

describe("F07: retries", () => {
  it("MUST add no more to the load of a failing backend than the agent's budget", async () => {
    let runs = 0;
    const run: Backend["run"] = async function* () {
      runs++;
      yield* [];
      throw new BackendError("down", { retryable: true });
    };
    const backend: Backend = { kind: "down", models: undefined, run, summarise: async () => "" };
    await using core = await startCore({ agents: [{ name: "main", deadlineMs: 1e9 }, { name: "other" }], backend });
    const turns = [];
    for (let n = 0; n < 300; n++) turns.push(await core.start({ session: `chat:${n}` }));
    for (let n = 0; n < 8; n++) await core.clock.advance(1_000);
    const ended = await Promise.all(turns.map(({ turnId }) => core.core.turns.get(turnId)));
    expect(new Set(ended.map(({ status }) => status))).toEqual(new Set(["failed"]));
    // A hundred, and those that ended turns return; with three attempts each there would be six hundred more.
    expect(runs - 300).toBeGreaterThanOrEqual(100);
    expect(runs - 300).toBeLessThanOrEqual(100 + 300 / 5);
    // Another agent has its own.
    const before = runs;
    const other = await core.start({ agent: "other", session: "chat:other" });
    for (let n = 0; n < 3; n++) await core.clock.advance(1_000);
    expect(await core.ended(other)).toMatchObject({ status: "failed", attempt: 3 });
    expect(runs - before).toBe(3);
  });

  it.each([
    ["7", 7_000],
    [" 0 ", 0],
    ["Sun, 22 Nov 2026 00:00:05 GMT", 5_000],
    ["Sat, 21 Nov 2026 00:00:00 GMT", 0],
    ["soon", undefined],
    ["-1", undefined],
    ["1.5", undefined],
    ["2026", 2_026_000],
    ["2026-11-22", undefined],
    ["99999999999", undefined],
    [undefined, undefined],
  ])("wait as long as a remote requests, in seconds or by a date: %s", (header, ms) => {
    expect(retryAfterOf({ "retry-after": header }, Date.parse("2026-11-22T00:00:00Z"))).toBe(ms);
  });
});
