import { describe, expect, it } from "vitest";
import { BackendError } from "#kit/errors.ts";
import type { Store } from "#store/store.ts";
import { startCore, type TestCore } from "./start-core.ts";

function runningOf({ scripted }: TestCore): string[] {
  return scripted.runs.map(({ turn }) => turn.message.text);
}

describe("the runner", () => {
  it("runs a session's turns one at a time, in order", async () => {
    await using core = await startCore();
    for (const text of ["one", "two", "three"]) await core.start({ text });
    for (const text of ["one", "two", "three"]) {
      const run = await core.scripted.next();
      await core.clock.settle();
      expect(runningOf(core).at(-1)).toBe(text);
      run.end();
      await core.ended(run.turn);
    }
  });

  it("runs turns of different sessions in parallel", async () => {
    await using core = await startCore();
    for (const session of ["chat:a", "chat:b", "chat:c"]) await core.start({ session, text: session });
    await core.clock.settle();
    expect(runningOf(core)).toEqual(["chat:a", "chat:b", "chat:c"]);
    expect(core.runner.running()).toBe(3);
  });

  it("runs at most `concurrency` turns of an agent, and the next when one has ended", async () => {
    await using core = await startCore({ agents: [{ name: "main", concurrency: 2 }] });
    for (const text of ["one", "two", "three", "four"]) await core.start({ session: `chat:${text}`, text });
    await core.clock.settle();
    expect(runningOf(core)).toEqual(["one", "two"]);
    core.scripted.runs[1]?.end();
    await core.clock.settle();
    expect(runningOf(core)).toEqual(["one", "two", "three"]);
    core.scripted.runs[0]?.end();
    await core.clock.settle();
    expect(runningOf(core)).toEqual(["one", "two", "three", "four"]);
    expect(core.runner.runningOf("main")).toBe(2);
  });

  it("delays only the turns of a full agent", async () => {
    await using core = await startCore({ agents: [{ name: "full", concurrency: 1 }, { name: "other" }] });
    for (const text of ["one", "two", "three"]) await core.start({ agent: "full", session: `chat:${text}`, text });
    await core.start({ agent: "other", session: "chat:other", text: "other" });
    await core.clock.settle();
    expect(runningOf(core)).toEqual(["one", "other"]);
  });

  it("runs at most `concurrency` turns of the gateway, and the next when one has ended", async () => {
    const agents = [{ name: "one" }, { name: "two" }];
    await using core = await startCore({ agents, settings: { concurrency: 2 } });
    for (const [n, agent] of ["one", "two", "one", "two"].entries()) {
      await core.start({ agent, session: `chat:${n}`, text: String(n) });
    }
    await core.clock.settle();
    expect(runningOf(core)).toEqual(["0", "1"]);
    core.scripted.runs[0]?.end();
    await core.clock.settle();
    expect(core.scripted.runs).toHaveLength(3);
    core.scripted.runs[1]?.end();
    core.scripted.runs[2]?.end();
    await core.clock.settle();
    expect(core.scripted.runs).toHaveLength(4);
  });

  it("frees a place that a repeated or refused start had taken", async () => {
    await using core = await startCore({ agents: [{ name: "main", concurrency: 1 }] });
    const idempotency = { key: "k", hash: "hash" };
    const first = await core.start({ idempotency });
    (await core.scripted.next()).end();
    await core.ended(first);
    await core.start({ idempotency });
    const wrong = core.start({ idempotency: { key: "k", hash: "other" } });
    await expect(wrong).rejects.toMatchObject({ name: "idempotency-mismatch" });
    expect(core.runner.running()).toBe(0);
    await core.start({ text: "next" });
    expect((await core.scripted.next()).turn.message.text).toBe("next");
  });

  it("claims a turn that waited for a place that a start took without needing it", async () => {
    let isSlow = false;
    let release = () => {};
    await using core = await startCore({
      agents: [{ name: "main", concurrency: 1 }],
      wrapStore: (store) => ({
        // Another node stores the first turn between this check and the start.
        findReplay: async () => undefined,
        startTurn: async (order) => {
          const started = await store.startTurn(order);
          if (isSlow && order.claim) await new Promise<void>((resolve) => (release = resolve));
          return started;
        },
      }),
    });
    const idempotency = { key: "k", hash: "hash" };
    const first = await core.start({ idempotency });
    (await core.scripted.next()).end();
    await core.ended(first);
    isSlow = true;
    const repeated = core.start({ idempotency });
    await core.clock.settle();
    await core.start({ session: "chat:b", text: "behind it" });
    await core.clock.settle();
    expect(core.scripted.runs).toHaveLength(1);
    release();
    await repeated;
    expect((await core.scripted.next()).turn.message.text).toBe("behind it");
  });

  it("alternates between turns with a waiting caller and other turns", async () => {
    await using core = await startCore({ agents: [{ name: "main", concurrency: 1 }] });
    await core.start({ session: "chat:first", text: "first" });
    for (let n = 0; n < 3; n++) await core.start({ session: `chat:event${n}`, text: "event" });
    for (let n = 0; n < 2; n++) void core.start({ session: `chat:caller${n}`, text: "caller", waitMs: 60_000 });
    await core.start({ session: "chat:reader", text: "reader", streamed: true });
    await core.clock.settle();
    for (let n = 0; n < 7; n++) (await core.scripted.next()).end();
    await core.clock.settle();
    const isWaited = runningOf(core)
      .slice(1)
      .map((text) => text !== "event");
    expect(isWaited.filter((waited, n) => waited === isWaited[n - 1])).toEqual([]);
  });

  it("starts waiting turns if a new configuration gives their agent more places", async () => {
    await using core = await startCore({ agents: [{ name: "main", concurrency: 1 }] });
    for (const session of ["chat:a", "chat:b"]) await core.start({ session });
    await core.core.reconfigure(core.settingsWith([{ name: "main", concurrency: 2 }]));
    await core.clock.settle();
    expect(core.scripted.runs).toHaveLength(2);
  });

  it("claims the next turn of a session in a durable store together with the end of the previous turn", async () => {
    await using core = await startCore({
      // Without notifications of work, a waiting turn is claimed only together with the end of a turn.
      wrapStore: (store) => ({ durable: true, watch: (watcher) => store.watch({ ...watcher, work: () => {} }) }),
    });
    for (const text of ["one", "two", "three"]) await core.start({ text });
    for (const _ of [1, 2, 3]) (await core.scripted.next()).end();
    expect(runningOf(core)).toEqual(["one", "two", "three"]);
  });

  it("claims once for a turn that became ready", async () => {
    let claims = 0;
    await using core = await startCore({
      wrapStore: (store) => ({
        claimTurns: (request) => {
          claims++;
          return store.claimTurns(request);
        },
      }),
    });
    for (const text of ["one", "two"]) await core.start({ text });
    claims = 0;
    (await core.scripted.next()).end();
    await core.scripted.next();
    await core.clock.settle();
    expect(claims).toBe(1);
  });

  it("runs a turn that the agent's limit left in the queue when a place was freed during the claim", async () => {
    let isSlow = false;
    let letClaim = () => {};
    await using core = await startCore({
      agents: [{ name: "main", concurrency: 2 }],
      wrapStore: (store) => ({
        claimTurns: async (request) => {
          const claimed = await store.claimTurns(request);
          if (isSlow && claimed.turns.length > 0) await new Promise<void>((resolve) => (letClaim = resolve));
          return claimed;
        },
      }),
    });
    for (const text of ["one", "two", "three", "four"]) await core.start({ session: `chat:${text}`, text });
    await core.clock.settle();
    isSlow = true;
    core.scripted.runs[0]?.end();
    await core.clock.settle();
    core.scripted.runs[1]?.end();
    await core.clock.settle();
    expect(runningOf(core)).toEqual(["one", "two"]);
    isSlow = false;
    letClaim();
    await core.clock.settle();
    expect(runningOf(core)).toEqual(["one", "two", "three", "four"]);
  });

  it("cancels a turn whose cancellation arrived between its claim and its run", async () => {
    let letClaim = () => {};
    const gate = new Promise<void>((resolve) => (letClaim = resolve));
    const slowClaims = (own: Store): Store => ({
      ...own,
      claimTurns: async (request) => {
        const claimed = await own.claimTurns(request);
        if (claimed.turns.length > 0) await gate;
        return claimed;
      },
    });
    await using core = await startCore({ wrapStore: slowClaims });
    await core.start();
    const second = await core.start();
    (await core.scripted.next()).end();
    await core.clock.settle();
    expect(await core.turns.get(second.turnId)).toMatchObject({ status: "running" });
    const cancelled = core.turns.cancel(second.turnId);
    await core.clock.settle();
    letClaim();
    expect(await cancelled).toMatchObject({ status: "cancelled" });
    expect(core.scripted.runs.length).toBeLessThanOrEqual(2);
    await core.clock.settle();
    expect(core.runner.running()).toBe(0);
  });

  it("runs the turns that the store had at the start", async () => {
    await using first = await startCore({ agents: [{ name: "main", concurrency: 0 }] });
    await first.start({ text: "left over" });
    await using second = await startCore({ wrapStore: () => first.store, clock: first.clock });
    expect((await second.scripted.next()).turn.message.text).toBe("left over");
  });
});

describe("the input of a backend", () => {
  it("is the turn, the agent's instructions and model, and the skills that the turn was started with", async () => {
    const agents = [{ name: "main", instructions: "be kind", model: "small" }];
    await using core = await startCore({ agents });
    const turn = await core.start({ text: "hello", outside: true });
    expect((await core.scripted.next()).turn).toMatchObject({
      turnId: turn.turnId,
      sessionId: "chat:a",
      agent: "main",
      attempt: 1,
      model: "small",
      instructions: "be kind",
      skills: [],
      message: { text: "hello", outside: true },
    });
    await core.start({ session: "chat:b", model: "large" });
    expect((await core.scripted.next()).turn.model).toBe("large");
  });

  it("has a history of earlier messages, each followed by its reply, however early it was sent", async () => {
    await using core = await startCore();
    for (const text of ["q1", "q2", "q3"]) await core.start({ text });
    const histories: string[][] = [];
    for (const reply of ["a1", "a2", "a3"]) {
      const run = await core.scripted.next();
      histories.push((await run.turn.history()).map(({ role, text }) => `${role}: ${text}`));
      run.say(reply);
      run.end();
      await core.ended(run.turn);
    }
    expect(histories).toEqual([
      [],
      ["user: q1", "assistant: a1"],
      ["user: q1", "assistant: a1", "user: q2", "assistant: a2"],
    ]);
  });

  it("has no history of the turn's own earlier attempts", async () => {
    await using core = await startCore();
    await core.start({ text: "q1" });
    const first = await core.scripted.next();
    first.say("half");
    const drained = core.runner.drain(1_000);
    await core.clock.advance(1_000);
    await drained;
    await using second = await startCore({ wrapStore: () => core.store, clock: core.clock });
    expect(await (await second.scripted.next()).turn.history()).toEqual([]);
  });
});

describe("agents that are removed from the configuration", () => {
  it("finish running turns, fail queued ones, and refuse new ones", async () => {
    await using core = await startCore({ agents: [{ name: "gone" }, { name: "stays" }] });
    const running = await core.start({ agent: "gone", text: "running" });
    const queued = await core.start({ agent: "gone" });
    const run = await core.scripted.next();
    await core.core.reconfigure(core.settingsWith([{ name: "stays" }]));
    const error = { name: "agent-removed" };
    expect(await core.turns.get(queued.turnId)).toMatchObject({ status: "failed", error });
    await expect(core.start({ agent: "gone" })).rejects.toMatchObject({ name: "agent-not-found" });
    run.say("bye");
    run.end();
    expect(await core.ended(running)).toMatchObject({ status: "completed", reply: "bye" });
    expect(core.scripted.runs).toHaveLength(1);
  });

  it("fail a turn that would be retried, because no backend remains", async () => {
    await using core = await startCore({ agents: [{ name: "gone" }, { name: "stays" }] });
    const turn = await core.start({ agent: "gone" });
    const run = await core.scripted.next();
    await core.core.reconfigure(core.settingsWith([{ name: "stays" }]));
    run.fail(new BackendError("too busy", { retryable: true }));
    await core.clock.advance(2_000);
    expect(await core.turns.get(turn.turnId)).toMatchObject({ status: "failed", error: { name: "agent-removed" } });
  });

  it("fail the turns that were released at the end of a store that is not durable", async () => {
    await using core = await startCore({ agents: [{ name: "gone" }, { name: "stays" }] });
    const turn = await core.start({ agent: "gone" });
    await core.scripted.next();
    await core.core.reconfigure(core.settingsWith([{ name: "stays" }]));
    const drained = core.runner.drain(1_000);
    await core.clock.advance(1_000);
    expect(await drained).toBe(1);
    await core.core.failQueued();
    expect(await core.turns.get(turn.turnId)).toMatchObject({ status: "failed", error: { name: "shutting-down" } });
  });
});
