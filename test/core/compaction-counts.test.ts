import { describe, expect, it } from "vitest";
import { BackendError } from "#kit/errors.ts";
import { nameOf, startPlayed } from "./played-core.ts";

describe("the usage of a summary", () => {
  it("is counted for the caller that requested it, also if the summary failed", async () => {
    await using core = await startPlayed();
    await core.talk("one");
    const failed = core.compact();
    const first = await core.nextAsked();
    first.used({ input: 7, output: 0 });
    first.fail(new BackendError("no words left"));
    expect(await nameOf(failed)).toBe("turn-failed");
    const done = core.compact();
    const second = await core.nextAsked();
    await core.clock.advance(30);
    second.used({ input: 5, output: 2 });
    second.used({ input: 6, output: 2, cached: 4, cost: 30 }, "small");
    second.answer("in short");
    await done;
    const counts = await core.store.readUsage({ from: 0, to: Infinity });
    const nothing = { messages: 0, completed: 0, failed: 0, cancelled: 0 };
    const of = { hour: expect.any(Number), agent: "main", surface: "rpc", caller: "ops", ...nothing, reasoning: 0 };
    expect(counts.filter(({ caller }) => caller === "ops")).toEqual([
      { ...of, model: "puppet", attempts: 1, latencyMs: 0, input: 7, output: 0, cached: 0, cost: 0 },
      // All of it, for the model that answered last.
      { ...of, model: "small", attempts: 1, latencyMs: 30, input: 11, output: 4, cached: 4, cost: 30 },
    ]);
  });

  it("is counted under its own name for an automatic compaction", async () => {
    await using core = await startPlayed({ settings: { compactAt: 2 } });
    await core.talk("a long message");
    const asked = await core.nextAsked();
    asked.used({ input: 9, output: 1 });
    asked.answer("in short");
    await core.clock.settle();
    expect(await core.store.readUsage({ from: 0, to: Infinity })).toContainEqual(
      expect.objectContaining({ surface: "heartbeat", caller: "compaction", attempts: 1, input: 9, output: 1 }),
    );
  });
});

describe("an automatic compaction", () => {
  it("runs before a session exceeds the context of its agent's model", async () => {
    const contextTokens = () => 1_000;
    await using core = await startPlayed({ settings: { compactAt: 100_000 }, backendWith: { contextTokens } });
    await core.talk("a".repeat(1_500));
    expect(core.asked).toHaveLength(0);
    await core.talk("b".repeat(100));
    const asked = await core.nextAsked();
    expect(asked.messages[0]).toMatch(/^user: aaa/);
    asked.answer("in short");
    await core.clock.settle();
    expect((await core.store.readSummary("chat:a"))?.text).toBe("in short");
  });

  it("never runs if it is off, whatever the context of a model is", async () => {
    await using core = await startPlayed({ settings: { compactAt: 0 }, backendWith: { contextTokens: () => 1_000 } });
    await core.talk("a".repeat(5_000));
    await core.clock.settle();
    expect(core.asked).toHaveLength(0);
  });
});
