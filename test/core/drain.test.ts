import { describe, expect, it } from "vitest";
import { BackendError } from "#kit/errors.ts";
import { startCore, type TestCore } from "./start-core.ts";

/** A memory store that claims to be durable: its queue is left to the next gateway that opens it. */
function startDurable() {
  return startCore({ wrapStore: () => ({ durable: true }) });
}

/** Starts to drain; reports if that has ended, and with which result. */
function drain({ runner, clock }: TestCore, ms: number) {
  const result = { handedBack: undefined as number | undefined };
  const done = runner.drain(ms).then((count) => {
    result.handedBack = count;
  });
  return { result, done, settle: () => clock.settle() };
}

describe("draining", () => {
  it("ends at once if nothing runs", async () => {
    await using core = await startCore();
    expect(await core.runner.drain(30_000)).toBe(0);
  });

  it("waits for running turns, and releases none if all have ended in time", async () => {
    await using core = await startDurable();
    const turn = await core.start();
    const run = await core.scripted.next();
    const draining = drain(core, 30_000);
    await core.clock.advance(29_000);
    expect(draining.result.handedBack).toBeUndefined();
    run.say("done");
    run.end();
    await draining.done;
    expect(draining.result.handedBack).toBe(0);
    expect(await core.turns.get(turn.turnId)).toMatchObject({ status: "completed", reply: "done" });
  });

  it("releases turns that have not ended in time, and notifies the backend", async () => {
    await using core = await startDurable();
    const turn = await core.start();
    const run = await core.scripted.next();
    run.say("half");
    const draining = drain(core, 30_000);
    await core.clock.advance(30_000);
    await draining.done;
    expect(draining.result.handedBack).toBe(1);
    expect(run.signal.aborted).toBe(true);
    expect(await core.turns.get(turn.turnId)).toMatchObject({ status: "queued", attempt: 1, reply: undefined });
  });

  it("lets the next gateway run the released turns from the start", async () => {
    await using first = await startDurable();
    const turn = await first.start();
    const run = await first.scripted.next();
    run.use(4, 1);
    run.say("half");
    await first.clock.settle();
    const draining = drain(first, 0);
    await draining.done;
    await using second = await startCore({ wrapStore: () => first.store, clock: first.clock });
    const again = await second.scripted.next();
    expect(again.turn).toMatchObject({ turnId: turn.turnId, attempt: 2, message: { text: "hello" } });
    again.use(4, 9);
    again.say("the whole reply");
    again.end();
    const usage = { input: 8, output: 10 };
    expect(await second.ended(turn)).toMatchObject({ status: "completed", reply: "the whole reply", usage });
  });

  it("leaves the queue of a durable store to the next gateway that opens it", async () => {
    await using core = await startDurable();
    await core.start();
    const queued = await core.start();
    const run = await core.scripted.next();
    const draining = drain(core, 30_000);
    run.end();
    await draining.done;
    expect(core.scripted.runs).toHaveLength(1);
    expect((await core.turns.get(queued.turnId)).status).toBe("queued");
  });

  it("runs the queue of a store that is not durable, while there is time", async () => {
    await using core = await startCore();
    await core.start();
    const queued = await core.start();
    const draining = drain(core, 30_000);
    (await core.scripted.next()).end();
    const last = await core.scripted.next();
    await draining.settle();
    expect(draining.result.handedBack).toBeUndefined();
    last.end();
    await draining.done;
    expect((await core.turns.get(queued.turnId)).status).toBe("completed");
  });

  it("waits for the next attempt of a turn in a store that is not durable", async () => {
    await using core = await startCore();
    const turn = await core.start();
    (await core.scripted.next()).fail(new BackendError("busy", { retryable: true }));
    await core.clock.settle();
    const draining = drain(core, 30_000);
    await core.clock.advance(500);
    (await core.scripted.next()).end();
    await draining.done;
    expect((await core.turns.get(turn.turnId)).status).toBe("completed");
  });

  it("starts nothing after it has ended", async () => {
    await using core = await startCore();
    await core.runner.drain(0);
    const turn = await core.start();
    core.runner.wake();
    await core.clock.advance(10_000);
    expect(core.scripted.runs).toHaveLength(0);
    expect((await core.turns.get(turn.turnId)).status).toBe("queued");
  });

  it("does not wait for a backend that ignores its signal", async () => {
    await using core = await startCore();
    await core.start();
    await core.scripted.next();
    const draining = drain(core, 1_000);
    await core.clock.advance(1_000);
    await draining.done;
    expect(draining.result.handedBack).toBe(1);
  });

  it("leaves no timer after the core is closed", async () => {
    const core = await startCore();
    await core.start();
    (await core.scripted.next()).fail(new BackendError("busy", { retryable: true, retryAfterMs: 60_000 }));
    await core.clock.settle();
    const draining = drain(core, 1_000);
    await core.clock.advance(1_000);
    await draining.done;
    await core[Symbol.asyncDispose]();
    await core.clock.advance(10_000);
    expect(core.clock.timers()).toBe(0);
  });
});

describe("closing", () => {
  it("ends sweeps, even if a sweep was running", async () => {
    let sweeps = 0;
    let release = () => {};
    const core = await startCore({
      wrapStore: (store) => ({
        sweep: async (request) => {
          sweeps++;
          await new Promise<void>((resolve) => (release = resolve));
          return await store.sweep(request);
        },
      }),
    });
    await core.clock.advance(1_000);
    expect(sweeps).toBe(1);
    await core.core.close();
    release();
    await core.clock.advance(60_000);
    expect(sweeps).toBe(1);
    expect(core.clock.timers()).toBe(0);
  });
});
