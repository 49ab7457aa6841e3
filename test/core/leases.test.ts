import { describe, expect, it } from "vitest";
import { GatewayError } from "#kit/errors.ts";
import { createMemoryStore } from "#store/memory/memory.ts";
import type { Store } from "#store/store.ts";
import { createManualClock } from "#test/harness/clock.ts";
import { joinedNamesOf, startCore, type TestCore } from "./start-core.ts";

function attempts({ scripted }: TestCore): number {
  return scripted.runs.length;
}

describe("leases", () => {
  it("hold a turn as long as it runs, however long that is", async () => {
    await using core = await startCore({ agents: [{ name: "main", deadlineMs: 3_600_000 }] });
    const turn = await core.start();
    const run = await core.scripted.next();
    await core.clock.advance(600_000);
    run.end();
    expect(await core.ended(turn)).toMatchObject({ status: "completed", attempt: 1 });
  });

  it("remain valid if the event loop was blocked for less than a lease", async () => {
    await using core = await startCore();
    const turn = await core.start();
    const run = await core.scripted.next();
    await core.clock.block(25_000);
    run.end();
    expect(await core.ended(turn)).toMatchObject({ status: "completed", attempt: 1 });
  });

  it("stop an attempt that lost its turn without a notification, and the turn ends with the later attempt's reply", async () => {
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
      "turn.queued",
      "turn.started",
      "message.created",
      "+slow",
      "turn.queued",
      "turn.started",
      "message.created",
      "+on time",
      "message.completed",
      "turn.completed",
    ]);
    await core.clock.settle();
    expect(core.runner.running()).toBe(0);
    expect(await core.logged("turn.lost")).toMatchObject([{ turnId: slow.turn.turnId, agent: "main", attempt: 1 }]);
  });

  it("stop an attempt whose turn another node has taken", async () => {
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

describe("a start", () => {
  it("requeues at once a turn whose lease has expired, because the gateway itself may be killed soon", async () => {
    const clock = createManualClock();
    const left = createMemoryStore({ clock });
    const gone = await startCore({ clock, wrapStore: () => withoutExtending(left, { value: true }) });
    const turn = await gone.start();
    await gone.scripted.next();
    await gone.core.close();
    await clock.advance(31_000);
    await using core = await startCore({ clock, wrapStore: () => left });
    await clock.advance(100);
    expect(core.scripted.runs[0]?.turn).toMatchObject({ turnId: turn.turnId, attempt: 2 });
  });
});

describe("a store that fails", () => {
  it("gets the end of a turn when it answers again", async () => {
    let failures = 2;
    await using core = await startCore({
      wrapStore: (store) => ({
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
    expect(core.figures()).toContain('gateway_store_failures_total{operation="endTurn"} 2\n');
  });

  it("does not leave callers waiting for a reply that a full store could not store: their turn runs again when there is room", async () => {
    let isFull = true;
    await using core = await startCore({
      wrapStore: (store) => ({
        endTurn: async (claim, end) => {
          if (isFull) throw new GatewayError("store-full");
          return await store.endTurn(claim, end);
        },
      }),
    });
    const answer = core.startFully({ waitMs: 90_000 });
    const run = await core.scripted.next();
    let told: unknown;
    void Promise.resolve(answer).then((started) => (told = started));
    run.end();
    await core.clock.advance(5_000);
    expect(told).toBeUndefined();
    await core.clock.advance(2_000);
    expect(told).toMatchObject({ turn: { turnId: run.turn.turnId, status: "running" } });
    isFull = false;
    await core.clock.advance(31_000);
    (await core.scripted.next()).end();
    expect(await core.ended(run.turn)).toMatchObject({ status: "completed", attempt: 2 });
  });

  it("gets claims of waiting turns when it answers again", async () => {
    let isDown = true;
    await using core = await startCore({
      agents: [{ name: "main", concurrency: 1 }],
      wrapStore: (store) => ({
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

function withoutExtending(store: Store, isDown: { value: boolean }): Store {
  return {
    ...store,
    // So that a draining runner leaves its queue to others.
    durable: true,
    extendClaims: async (claims, leaseMs) => {
      if (isDown.value) throw new GatewayError("store-unavailable");
      return await store.extendClaims(claims, leaseMs);
    },
  };
}

/** Claims a turn with an expired lease, like another node. */
async function takeOver({ store, clock }: TestCore, turnId: string): Promise<void> {
  const request = { now: clock.now(), node: "node_other", leaseMs: 60_000, free: 1, freeOf: () => 1 };
  const { turns } = await store.claimTurns({ ...request, newMessageId: () => "msg_other" });
  if (turns[0]?.turn.turnId !== turnId) throw new Error("the other node got nothing");
}
