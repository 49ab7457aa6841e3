import { describe, expect, it } from "vitest";
import { BackendError, GatewayError } from "#kit/errors.ts";
import { startCore, type TestCore } from "./start-core.ts";

function busy(retryAfterMs?: number) {
  return new BackendError("too busy", { retryable: true, retryAfterMs });
}
function attempts({ scripted }: TestCore): number {
  return scripted.runs.length;
}

describe("deadlines", () => {
  it("fail a turn that passes its agent's deadline, notify the backend, and store what was written", async () => {
    await using core = await startCore({ agents: [{ name: "main", deadlineMs: 60_000 }] });
    const turn = await core.start();
    const run = await core.scripted.next();
    run.say("half");
    await core.clock.advance(59_000);
    expect(run.signal.aborted).toBe(false);
    await core.clock.advance(1_250);
    expect(run.signal.aborted).toBe(true);
    const error = { name: "turn-timeout" };
    expect(await core.turns.get(turn.turnId)).toMatchObject({ status: "failed", error, reply: "half" });
  });

  it("free the turn's place, and the session continues with its next turn", async () => {
    await using core = await startCore({ agents: [{ name: "main", deadlineMs: 1_000, concurrency: 1 }] });
    await core.start({ text: "hangs" });
    await core.start({ text: "next" });
    await core.scripted.next();
    await core.clock.advance(1_250);
    expect((await core.scripted.next()).turn.message.text).toBe("next");
    expect(core.runner.running()).toBe(1);
  });

  it("do not move when the wall clock jumps", async () => {
    await using core = await startCore({ agents: [{ name: "main", deadlineMs: 60_000 }] });
    const turn = await core.start();
    for (const ms of [3_600_000, -7_200_000]) {
      core.clock.jump(ms);
      await core.clock.advance(1_000);
      expect(await core.turns.get(turn.turnId)).toMatchObject({ status: "running" });
    }
    await core.clock.advance(59_000);
    expect(await core.turns.get(turn.turnId)).toMatchObject({ status: "failed" });
  });
});

describe("retries", () => {
  it("run a turn three times in all, after growing pauses, and then fail it with the backend's error", async () => {
    await using core = await startCore();
    const turn = await core.start();
    (await core.scripted.next()).fail(busy());
    await core.clock.advance(249);
    expect(attempts(core)).toBe(1);
    await core.clock.advance(251);
    expect(attempts(core)).toBe(2);
    (await core.scripted.next()).fail(busy());
    await core.clock.advance(499);
    expect(attempts(core)).toBe(2);
    await core.clock.advance(501);
    expect(attempts(core)).toBe(3);
    (await core.scripted.next()).fail(busy());
    const error = { name: "turn-failed", detail: "too busy" };
    expect(await core.ended(turn)).toMatchObject({ status: "failed", attempt: 3, error });
    await core.clock.advance(60_000);
    expect(attempts(core)).toBe(3);
  });

  it("return the reply of the successful attempt, and count the usage of all", async () => {
    await using core = await startCore();
    const answer = core.startFully({ waitMs: 60_000 });
    const first = await core.scripted.next();
    first.use(3, 0);
    first.fail(busy());
    await core.clock.advance(500);
    const second = await core.scripted.next();
    expect(second.turn.attempt).toBe(2);
    second.say("at last");
    second.use(3, 2);
    second.end();
    const { turn } = await answer;
    expect(turn).toMatchObject({ status: "completed", reply: "at last", usage: { input: 6, output: 2 } });
    const [count] = await core.store.readUsage({ from: 0, to: Infinity });
    expect(count).toMatchObject({ messages: 1, attempts: 2, failed: 0, completed: 1, input: 6, output: 2 });
  });

  it("wait as long as the backend requests", async () => {
    await using core = await startCore();
    await core.start();
    (await core.scripted.next()).fail(busy(20_000));
    await core.clock.advance(19_999);
    expect(attempts(core)).toBe(1);
    await core.clock.advance(1);
    expect(attempts(core)).toBe(2);
  });

  it("end if the backend requests a longer pause than a turn may take", async () => {
    await using core = await startCore({ agents: [{ name: "main", deadlineMs: 60_000 }] });
    const turn = await core.start();
    (await core.scripted.next()).fail(busy(60_001));
    expect(await core.ended(turn)).toMatchObject({ status: "failed", attempt: 1, error: { detail: "too busy" } });
  });

  it("share one deadline", async () => {
    await using core = await startCore({ agents: [{ name: "main", deadlineMs: 60_000 }] });
    const turn = await core.start();
    const first = await core.scripted.next();
    await core.clock.advance(40_000);
    first.fail(busy(10));
    await core.clock.advance(500);
    const second = await core.scripted.next();
    await core.clock.advance(19_000);
    expect(second.signal.aborted).toBe(false);
    await core.clock.advance(2_000);
    expect(second.signal.aborted).toBe(true);
    expect(await core.ended(turn)).toMatchObject({ status: "failed", attempt: 2, error: { name: "turn-timeout" } });
  });

  it("end if the backend requests a longer pause than the rest of the deadline", async () => {
    await using core = await startCore({ agents: [{ name: "main", deadlineMs: 60_000 }] });
    const turn = await core.start();
    const first = await core.scripted.next();
    await core.clock.advance(40_000);
    first.fail(busy(20_001));
    expect(await core.ended(turn)).toMatchObject({ status: "failed", attempt: 1, error: { detail: "too busy" } });
  });

  it("occupy no place during a pause, and other sessions continue", async () => {
    await using core = await startCore({ agents: [{ name: "main", concurrency: 1 }] });
    await core.start();
    (await core.scripted.next()).fail(busy(60_000));
    await core.clock.settle();
    expect(core.runner.running()).toBe(0);
    await core.start({ session: "chat:b", text: "other" });
    expect((await core.scripted.next()).turn.message.text).toBe("other");
  });

  it("do not follow after the first piece of the reply", async () => {
    await using core = await startCore();
    const turn = await core.start();
    const run = await core.scripted.next();
    run.say("h");
    run.fail(busy());
    expect(await core.ended(turn)).toMatchObject({ status: "failed", attempt: 1, reply: "h" });
    await core.clock.advance(60_000);
    expect(attempts(core)).toBe(1);
  });

  it("follow after an empty piece", async () => {
    await using core = await startCore();
    await core.start();
    const run = await core.scripted.next();
    run.say("");
    run.fail(busy());
    await core.clock.advance(500);
    expect(attempts(core)).toBe(2);
  });

  it("do not follow an error that the backend marks as permanent", async () => {
    await using core = await startCore();
    const turn = await core.start();
    (await core.scripted.next()).fail(new BackendError("no such model"));
    const error = { name: "turn-failed", detail: "no such model" };
    expect(await core.ended(turn)).toMatchObject({ status: "failed", attempt: 1, error });
  });

  it("hide an error that is not from the backend from the caller, and log it completely", async () => {
    await using core = await startCore();
    const turn = await core.start();
    (await core.scripted.next()).fail(new Error("password=hunter2 at db.internal"));
    const { error } = await core.ended(turn);
    expect(error).toEqual({ name: "turn-failed", detail: "the agent's backend failed" });
    const [line] = await core.logged("backend.failed");
    expect(line).toMatchObject({ turnId: turn.turnId, error: { message: expect.stringContaining("db.internal") } });
  });

  it("pass on an error of the contract by its name", async () => {
    await using core = await startCore();
    const turn = await core.start();
    (await core.scripted.next()).fail(new GatewayError("unknown-model", "no model x"));
    expect((await core.ended(turn)).error).toEqual({ name: "unknown-model", detail: "no model x" });
  });
});
