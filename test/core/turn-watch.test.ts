import { describe, expect, it } from "vitest";
import type { Backend } from "#backends/backend.ts";
import { lazyBackend } from "#backends/lazy.ts";
import { startCore } from "./start-core.ts";

const LIMITS = { name: "main", firstByteMs: 2_000, silenceMs: 500 };
const LEASE_LOOK_MS = 10_000;
const NEXT = { note: { name: "model.unavailable", detail: {} }, restart: true };

describe("F06: the limit of an agent's silence", () => {
  it("is `firstByte` until the first sign of life, and then `silence`", async () => {
    await using core = await startCore({ agents: [LIMITS] });
    const turn = await core.start();
    const run = await core.scripted.next();
    await core.clock.advance(1_999);
    run.say("so far");
    await core.clock.settle();
    await core.clock.advance(499);
    expect((await core.core.turns.get(turn.turnId)).status).toBe("running");
    await core.clock.advance(2);
    expect(await core.ended(turn)).toMatchObject({
      status: "failed",
      error: { detail: expect.stringMatching(/stopped sending/) },
    });
  });

  it("is separate for each turn, and leaves no timer", async () => {
    await using core = await startCore({ agents: [{ ...LIMITS, concurrency: 3 }] });
    const timers = core.clock.timers();
    const turns = [];
    for (const session of ["chat:a", "chat:b", "chat:c"]) {
      const turn = await core.start({ session });
      const run = await core.scripted.next();
      run.say("so far");
      await core.clock.settle();
      turns.push({ turn, run });
      await core.clock.advance(100);
    }
    const [first, second, third] = turns as [(typeof turns)[0], (typeof turns)[0], (typeof turns)[0]];
    second.run.say(", and more");
    await core.clock.settle();
    await core.clock.advance(201);
    expect((await core.ended(first.turn)).error?.detail).toMatch(/stopped sending/);
    await core.clock.advance(200);
    expect((await core.ended(third.turn)).error?.detail).toMatch(/stopped sending/);
    expect((await core.core.turns.get(second.turn.turnId)).status).toBe("running");
    second.run.end();
    expect((await core.ended(second.turn)).status).toBe("completed");
    await core.clock.advance(LEASE_LOOK_MS);
    expect(core.clock.timers()).toBe(timers);
  });

  it("MUST not include the time in which the agent's code is loaded", async () => {
    let load = (_backend: Backend) => {};
    const loading = new Promise<Backend>((resolve) => (load = resolve));
    const { backend, ...scripted } = (await startScripted()) as Awaited<ReturnType<typeof startScripted>>;
    await using core = await startCore({
      agents: [LIMITS],
      backend: lazyBackend({ kind: "lazy", models: undefined }, () => loading),
    });
    const turn = await core.start();
    await core.clock.settle();
    await core.clock.advance(60_000);
    load(backend);
    const run = await scripted.next();
    await core.clock.advance(1_999);
    run.say("here");
    run.end();
    expect(await core.ended(turn)).toMatchObject({ status: "completed", attempt: 1 });
  });

  it("MUST start again for the next model, as for the first one", async () => {
    await using core = await startCore({ agents: [LIMITS] });
    const turn = await core.start();
    const run = await core.scripted.next();
    await core.clock.advance(1_900);
    run.give(NEXT);
    await core.clock.settle();
    await core.clock.advance(1_900);
    run.say("here");
    run.end();
    expect(await core.ended(turn)).toMatchObject({ status: "completed", attempt: 1 });

    // No model has started: the turn is retried, as it would be without a second model.
    const hanging = await core.start();
    const next = await core.scripted.next();
    next.give(NEXT);
    await core.clock.settle();
    await core.clock.advance(2_001);
    await core.clock.settle();
    expect(await core.core.turns.get(hanging.turnId)).toMatchObject({ status: "queued" });
  });

  it("MUST end a late turn only if no other model can be requested", async () => {
    await using core = await startCore({ agents: [LIMITS] });
    const turn = await core.start();
    const run = await core.scripted.next();
    const late: number[] = [];
    run.turn.watch.whenLate(() => late.push(core.clock.monotonic()) < 3);
    const began = core.clock.monotonic();
    await core.clock.advance(1_999);
    expect(late).toEqual([]);
    await core.clock.advance(1);
    await core.clock.advance(2_000);
    expect(late).toEqual([began + 2_000, began + 4_000]);
    expect((await core.core.turns.get(turn.turnId)).status).toBe("running");
    await core.clock.advance(2_000);
    await core.clock.settle();
    expect(late).toHaveLength(3);
    expect(await core.core.turns.get(turn.turnId)).toMatchObject({ status: "queued" });
  });

  it("is `firstByte` again after a tool has run, and causes no retry after the reply has started", async () => {
    await using core = await startCore({ agents: [LIMITS] });
    const turn = await core.start();
    const run = await core.scripted.next();
    run.use(3, 1);
    await core.clock.settle();
    let done = () => {};
    const working = run.turn.watch.pause(new Promise<void>((resolve) => (done = resolve)));
    await core.clock.advance(60_000);
    done();
    await working;
    await core.clock.advance(1_900);
    expect((await core.core.turns.get(turn.turnId)).status).toBe("running");
    await core.clock.advance(200);
    expect(await core.ended(turn)).toMatchObject({ status: "failed", attempt: 1 });
  });
});

async function startScripted() {
  const { createScriptedBackend } = await import("#test/backends/scripted.ts");
  return createScriptedBackend();
}
