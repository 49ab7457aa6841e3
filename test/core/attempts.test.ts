import { describe, expect, it } from "vitest";
import { BackendError, GatewayError } from "#core/errors.ts";
import type { Store } from "#store/store.ts";
import { joinedNamesOf, startCore, type TestCore } from "./start-core.ts";

const busy = (retryAfterMs?: number) => new BackendError("too busy", { retryable: true, retryAfterMs });
const attempts = ({ scripted }: TestCore): number => scripted.runs.length;

describe("deadlines", () => {
  it("fails a turn that passes its agent's deadline, tells the backend, and keeps what was written", async () => {
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

  it("goes on with the next turn of the session and gives the place back", async () => {
    await using core = await startCore({ agents: [{ name: "main", deadlineMs: 1_000, concurrency: 1 }] });
    await core.start({ text: "hangs" });
    await core.start({ text: "next" });
    await core.scripted.next();
    await core.clock.advance(1_250);
    expect((await core.scripted.next()).turn.message.text).toBe("next");
    expect(core.runner.running()).toBe(1);
  });

  it("moves no deadline when the wall clock jumps", async () => {
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

describe("trying again", () => {
  it("tries a turn three times in all, after a growing pause, and then fails it with what the backend said", async () => {
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

  it("answers with the reply of the attempt that went well, and counts the usage of all", async () => {
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

  it("waits as long as the backend asks for", async () => {
    await using core = await startCore();
    await core.start();
    (await core.scripted.next()).fail(busy(20_000));
    await core.clock.advance(19_999);
    expect(attempts(core)).toBe(1);
    await core.clock.advance(1);
    expect(attempts(core)).toBe(2);
  });

  it("gives up when the backend asks for longer than a turn may take", async () => {
    await using core = await startCore({ agents: [{ name: "main", deadlineMs: 60_000 }] });
    const turn = await core.start();
    (await core.scripted.next()).fail(busy(60_001));
    expect(await core.ended(turn)).toMatchObject({ status: "failed", attempt: 1, error: { detail: "too busy" } });
  });

  it("shares one deadline among all attempts", async () => {
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

  it("gives up when the backend asks for longer than is left of the deadline", async () => {
    await using core = await startCore({ agents: [{ name: "main", deadlineMs: 60_000 }] });
    const turn = await core.start();
    const first = await core.scripted.next();
    await core.clock.advance(40_000);
    first.fail(busy(20_001));
    expect(await core.ended(turn)).toMatchObject({ status: "failed", attempt: 1, error: { detail: "too busy" } });
  });

  it("holds no place while it waits, and lets other sessions go on", async () => {
    await using core = await startCore({ agents: [{ name: "main", concurrency: 1 }] });
    await core.start();
    (await core.scripted.next()).fail(busy(60_000));
    await core.clock.settle();
    expect(core.runner.running()).toBe(0);
    await core.start({ session: "chat:b", text: "other" });
    expect((await core.scripted.next()).turn.message.text).toBe("other");
  });

  it("does not try again after the first piece of the reply", async () => {
    await using core = await startCore();
    const turn = await core.start();
    const run = await core.scripted.next();
    run.say("h");
    run.fail(busy());
    expect(await core.ended(turn)).toMatchObject({ status: "failed", attempt: 1, reply: "h" });
    await core.clock.advance(60_000);
    expect(attempts(core)).toBe(1);
  });

  it("takes an empty piece for none", async () => {
    await using core = await startCore();
    await core.start();
    const run = await core.scripted.next();
    run.say("");
    run.fail(busy());
    await core.clock.advance(500);
    expect(attempts(core)).toBe(2);
  });

  it("does not try again what the backend says is not worth it", async () => {
    await using core = await startCore();
    const turn = await core.start();
    (await core.scripted.next()).fail(new BackendError("no such model"));
    const error = { name: "turn-failed", detail: "no such model" };
    expect(await core.ended(turn)).toMatchObject({ status: "failed", attempt: 1, error });
  });

  it("tells the caller nothing of an error that is not the backend's own word, and logs it whole", async () => {
    await using core = await startCore();
    const turn = await core.start();
    (await core.scripted.next()).fail(new Error("password=hunter2 at db.internal"));
    const { error } = await core.ended(turn);
    expect(error).toEqual({ name: "turn-failed", detail: "the agent's backend failed" });
    const [line] = await core.logged("backend.failed");
    expect(line).toMatchObject({ turnId: turn.turnId, error: { message: expect.stringContaining("db.internal") } });
  });

  it("passes on an error of the contract by its name", async () => {
    await using core = await startCore();
    const turn = await core.start();
    (await core.scripted.next()).fail(new GatewayError("unknown-model", "no model x"));
    expect((await core.ended(turn)).error).toEqual({ name: "unknown-model", detail: "no model x" });
  });
});

describe("leases", () => {
  it("holds a turn as long as it runs, however long that is", async () => {
    await using core = await startCore({ agents: [{ name: "main", deadlineMs: 3_600_000 }] });
    const turn = await core.start();
    const run = await core.scripted.next();
    await core.clock.advance(600_000);
    run.end();
    expect(await core.ended(turn)).toMatchObject({ status: "completed", attempt: 1 });
  });

  it("survives an event loop that was blocked for less than a lease", async () => {
    await using core = await startCore();
    const turn = await core.start();
    const run = await core.scripted.next();
    await core.clock.block(25_000);
    run.end();
    expect(await core.ended(turn)).toMatchObject({ status: "completed", attempt: 1 });
  });

  it("stops an attempt that lost its turn, tells nobody that the turn is gone, and ends with the later one's reply", async () => {
    const isDown = { value: true };
    await using core = await startCore({ wrapStore: (store) => withoutExtending(store, isDown) });
    const answer = core.startFully({ waitMs: 300_000 });
    const slow = await core.scripted.next();
    const reader = core.follow(await core.turns.get(slow.turn.turnId));
    slow.say("slow");
    await core.clock.advance(31_000);
    const again = await core.scripted.next();
    expect(again.turn).toMatchObject({ turnId: slow.turn.turnId, attempt: 2 });
    expect(slow.signal.aborted).toBe(true);
    slow.end();
    isDown.value = false;
    again.say("on ");
    again.say("time");
    again.end();
    await expect(answer).resolves.toMatchObject({ turn: { status: "completed", reply: "on time" } });
    expect(joinedNamesOf(await reader.done)).toEqual([
      ...["turn.queued", "turn.started", "message.created", "+slow", "turn.queued"],
      ...["turn.started", "message.created", "+on time", "message.completed", "turn.completed"],
    ]);
    await core.clock.settle();
    expect(core.runner.running()).toBe(0);
  });

  it("stops an attempt whose turn another node has taken", async () => {
    const isDown = { value: true };
    await using core = await startCore({ wrapStore: (store) => withoutExtending(store, isDown) });
    const turn = await core.start();
    const run = await core.scripted.next();
    void core.runner.drain(600_000);
    await core.clock.advance(31_000);
    await takeOver(core, turn.turnId);
    expect(run.signal.aborted).toBe(false);
    isDown.value = false;
    await core.clock.advance(11_000);
    expect(run.signal.aborted).toBe(true);
    expect(await core.turns.get(turn.turnId)).toMatchObject({ status: "running", attempt: 2 });
  });
});

describe("a store that fails", () => {
  it("keeps the end of a turn when the store answers again", async () => {
    let failures = 2;
    await using core = await startCore({
      wrapStore: (store) => ({
        ...store,
        endTurn: async (claim, end) => {
          if (failures-- > 0) throw new GatewayError("store-unavailable");
          return await store.endTurn(claim, end);
        },
      }),
    });
    const turn = await core.start();
    const run = await core.scripted.next();
    run.say("hi");
    run.end();
    await core.clock.advance(2_000);
    expect(await core.turns.get(turn.turnId)).toMatchObject({ status: "completed", reply: "hi" });
    expect(await core.logged("store.failed")).toHaveLength(2);
  });

  it("claims what waits when the store answers again", async () => {
    let isDown = true;
    await using core = await startCore({
      agents: [{ name: "main", concurrency: 1 }],
      wrapStore: (store) => ({
        ...store,
        claimTurns: async (request) => {
          if (isDown) throw new GatewayError("store-unavailable");
          return await store.claimTurns(request);
        },
      }),
    });
    await core.start({ session: "chat:a" });
    await core.start({ session: "chat:b", text: "waits" });
    await core.clock.advance(5_000);
    expect(attempts(core)).toBeLessThan(2);
    isDown = false;
    await core.clock.advance(1_000);
    (await core.scripted.next()).end();
    expect((await core.scripted.next()).turn.message.text).toBe("waits");
  });
});

const withoutExtending = (store: Store, isDown: { value: boolean }): Store => ({
  ...store,
  // So that a draining runner leaves what waits to others.
  durable: true,
  extendClaims: async (claims, leaseMs) => {
    if (isDown.value) throw new GatewayError("store-unavailable");
    return await store.extendClaims(claims, leaseMs);
  },
});

/** Claims a turn whose lease has ended, as another node does. */
const takeOver = async ({ store, clock }: TestCore, turnId: string): Promise<void> => {
  const request = { now: clock.now(), node: "node_other", leaseMs: 60_000, free: 1, freeOf: () => 1 };
  const { turns } = await store.claimTurns({ ...request, newMessageId: () => "msg_other" });
  if (turns[0]?.turn.turnId !== turnId) throw new Error("the other node got nothing");
};
