import { describe, expect, it } from "vitest";
import { GatewayError } from "#kit/errors.ts";
import { deliveryOf } from "#test/stores/world.ts";
import { AMPLE, startCore } from "./start-core.ts";

function storesNothing(core: Awaited<ReturnType<typeof startCore>>) {
  return expect(core.store.stats()).toMatchObject({ sessions: 0, turnsQueued: 0, turnsRunning: 0, deliveries: 0 });
}

describe("starting a turn", () => {
  it("stores message, turn, idempotency key and delivery before it resolves", async () => {
    await using core = await startCore();
    const delivery = deliveryOf("dlv_1");
    const options = { text: "hello", idempotency: { key: "k", hash: "hash" }, delivery, caller: "ops", model: "m" };
    const turn = await core.start(options);
    expect(turn.turnId).toMatch(/^turn_[0-9A-HJKMNP-TV-Z]{26}$/);
    expect(turn.messageId).toMatch(/^msg_[0-9A-HJKMNP-TV-Z]{26}$/);
    expect(await core.turns.get(turn.turnId)).toEqual(turn);
    expect(turn).toMatchObject({ surface: "rest", caller: "ops", model: "m", deliveryId: "dlv_1", skillIds: [] });
    expect(await core.store.readMessages("chat:a", { limit: 1 })).toMatchObject([{ text: "hello", outside: false }]);
    expect(await core.store.getDelivery("dlv_1")).toMatchObject(delivery);
    expect(await core.startFully(options)).toMatchObject({ turn: { turnId: turn.turnId }, replayed: true });
  });

  it("starts the turn at once if its agent has a free place", async () => {
    await using core = await startCore();
    expect(await core.start()).toMatchObject({ status: "running", attempt: 1 });
    expect(core.scripted.runs).toHaveLength(1);
  });

  it("stores nothing while the gateway accepts no new work", async () => {
    const admit = () => {
      throw new GatewayError("shutting-down");
    };
    await using core = await startCore({ admit });
    await expect(core.start()).rejects.toMatchObject({ name: "shutting-down" });
    storesNothing(core);
  });

  it("uses the current limits", async () => {
    const agents = [{ name: "main", concurrency: 0 }];
    await using core = await startCore({ agents });
    await core.start();
    const limits = { ...AMPLE, store: { ...AMPLE.store, turnsPerSession: 1 } };
    await core.core.reconfigure({ ...core.settingsWith(agents), limits });
    await expect(core.start()).rejects.toMatchObject({ name: "session-busy" });
  });
});

describe("waiting for a reply", () => {
  it("resolves for a turn that had to wait for a place", async () => {
    await using core = await startCore();
    await core.start();
    const answer = core.startFully({ waitMs: 90_000 });
    (await core.scripted.next()).end();
    const run = await core.scripted.next();
    run.say("second");
    run.end();
    expect((await answer).turn).toMatchObject({ status: "completed", reply: "second" });
  });

  it("resolves for a turn that ended before its start was reported", async () => {
    let hold = (): Promise<void> | undefined => undefined;
    await using core = await startCore({
      agents: [{ name: "main", concurrency: 1 }],
      wrapStore: (store) => ({
        startTurn: async (order) => {
          const started = await store.startTurn({ ...order, claim: undefined });
          await hold();
          return started;
        },
      }),
    });
    let tell = () => {};
    hold = () => new Promise((resolve) => (tell = resolve));
    const answer = core.startFully({ waitMs: 90_000 });
    await core.clock.settle();
    // The start itself holds the only place until it is answered.
    await core.core.reconfigure(core.settingsWith([{ name: "main", concurrency: 2 }]));
    const run = await core.scripted.next();
    run.say("quick");
    run.end();
    await core.clock.settle();
    tell();
    expect((await answer).turn).toMatchObject({ status: "completed", reply: "quick" });
  });

  it("resolves with the turn in its current state when the time is over, and leaves it running", async () => {
    await using core = await startCore();
    const answer = core.startFully({ waitMs: 90_000 });
    const run = await core.scripted.next();
    await core.clock.advance(90_000);
    const { turn } = await answer;
    expect(turn.status).toBe("running");
    run.say("late");
    run.end();
    expect(await core.ended(turn)).toMatchObject({ status: "completed", reply: "late" });
  });

  it("does not wait for a caller that has left", async () => {
    await using core = await startCore();
    const timers = core.clock.timers();
    const answer = core.startFully({ waitMs: 90_000, callerSignal: () => AbortSignal.abort() });
    await core.scripted.next();
    await core.clock.advance(100);
    expect((await answer).turn.status).toBe("running");
    // The turn's watch and its lease remain, and no timer of the wait.
    expect(core.clock.timers()).toBe(timers + 2);
  });

  it("notifies waiting callers that the turn was deleted with its session", async () => {
    await using core = await startCore();
    const answer = core.startFully({ waitMs: 90_000 });
    const run = await core.scripted.next();
    await core.store.deleteSession("chat:a", core.clock.now());
    await expect(answer).rejects.toMatchObject({ name: "turn-not-found", extra: { turnId: run.turn.turnId } });
    expect(run.signal.aborted).toBe(true);
  });

  it("leaves no rejection if the turn is deleted while a slow store is read", async () => {
    let release = () => {};
    let isSlow = false;
    await using core = await startCore({
      wrapStore: (store) => ({
        getTurn: async (turnId) => {
          const turn = await store.getTurn(turnId);
          const waits = isSlow;
          isSlow = false;
          if (waits) await new Promise<void>((resolve) => (release = resolve));
          return turn;
        },
      }),
    });
    const turn = await core.start();
    isSlow = true;
    const waiting = core.turns.wait(turn, 90_000);
    await core.store.deleteSession("chat:a", core.clock.now());
    // The run ends meanwhile: an unhandled rejection fails this file.
    await core.clock.settle();
    release();
    await expect(waiting).rejects.toMatchObject({ name: "turn-not-found" });
  });

  it("leaves no timer", async () => {
    await using core = await startCore({ agents: [{ name: "main", firstByteMs: 60_000, silenceMs: 60_000 }] });
    const timers = core.clock.timers();
    const answer = core.startFully({ waitMs: 90_000 });
    (await core.scripted.next()).end();
    await answer;
    // The timers of leases and of watches fire once more, and are not set again.
    await core.clock.advance(60_000);
    expect(core.clock.timers()).toBe(timers);
  });
});

describe("cancelling", () => {
  it("ends a queued turn, which then never reaches the backend", async () => {
    await using core = await startCore();
    await core.start({ text: "first" });
    const queued = await core.start({ text: "second" });
    await core.start({ text: "third" });
    expect(await core.turns.cancel(queued.turnId)).toMatchObject({ status: "cancelled", attempt: 0 });
    (await core.scripted.next()).end();
    expect((await core.scripted.next()).turn.message.text).toBe("third");
  });

  it("notifies the backend of a running turn, stores what was written, and counts the usage", async () => {
    await using core = await startCore();
    const turn = await core.start();
    const run = await core.scripted.next();
    run.say("half a re");
    run.use(5, 2);
    await core.clock.settle();
    const cancelled = await core.turns.cancel(turn.turnId);
    expect(cancelled).toMatchObject({ status: "cancelled", reply: "half a re", usage: { input: 5, output: 2 } });
    expect(run.signal.aborted).toBe(true);
    await run.left;
    expect(await core.turns.get(turn.turnId)).toEqual(cancelled);
    expect(await core.store.readUsage({ from: 0, to: Infinity })).toMatchObject([
      { cancelled: 1, input: 5, output: 2 },
    ]);
  });

  it("discards what a backend yields after its turn was cancelled", async () => {
    await using core = await startCore();
    const turn = await core.start();
    const run = await core.scripted.next();
    await core.turns.cancel(turn.turnId);
    run.say("too late");
    run.end();
    await core.clock.settle();
    expect((await core.turns.get(turn.turnId)).reply).toBeUndefined();
    expect(await core.store.readMessages("chat:a", { limit: 9 })).toHaveLength(1);
  });

  it("ends a turn that waits for its next attempt", async () => {
    const { BackendError } = await import("#kit/errors.ts");
    await using core = await startCore();
    const turn = await core.start();
    (await core.scripted.next()).fail(new BackendError("busy", { retryable: true }));
    await core.clock.settle();
    expect(await core.turns.cancel(turn.turnId)).toMatchObject({ status: "cancelled", attempt: 1 });
    await core.clock.advance(60_000);
    expect(core.scripted.runs).toHaveLength(1);
  });
});
