import { describe, expect, it } from "vitest";
import type { Outcome } from "#channels/channel.ts";
import { createMemoryStore } from "#store/memory/memory.ts";
import { createPlayedChannel, DELIVERED, failing } from "#test/channels/played.ts";
import { createManualClock } from "#test/harness/clock.ts";
import { startAnnouncing } from "./start-announcing.ts";
import type { WrapStore } from "./start-core.ts";

const HOUR = 3_600_000;

describe("a gateway that stops", () => {
  it("waits for announcements in progress, and sends those that are left in a store that is not durable", async () => {
    const ops = createPlayedChannel();
    await using core = await startAnnouncing({ ops });
    for (let n = 0; n < 6; n++) await core.announce({ session: `webhook:${n}` });
    const drained = core.core.outbox.drain(30_000);
    for (let n = 0; n < 6; n++) {
      ops.calls[n]?.answer(DELIVERED);
      await core.clock.settle();
    }
    await drained;
    expect(ops.calls).toHaveLength(6);
    expect(core.store.stats().announcements).toBe(0);
  });

  it("leaves the waiting announcements of a durable store to the next gateway", async () => {
    const ops = createPlayedChannel();
    const durable = () => ({ durable: true });
    await using core = await startAnnouncing({ ops }, { wrapStore: durable });
    for (let n = 0; n < 6; n++) await core.announce({ session: `webhook:${n}` });
    const drained = core.core.outbox.drain(30_000);
    for (const { answer } of ops.calls) answer(DELIVERED);
    await drained;
    expect(ops.calls).toHaveLength(4);
    expect(await core.logged("announcements.left")).toMatchObject([{ left: 2, stored: true }]);
  });

  it("MUST release announcements that do not end in time, for the next gateway to send", async () => {
    const clock = createManualClock();
    const hanging = createPlayedChannel();
    await using first = await startAnnouncing({ ops: hanging }, { clock });
    const { turnId, deliveryId } = await first.announce();
    const drained = first.core.outbox.drain(30_000);
    await clock.advance(29_999);
    expect(hanging.calls[0]?.signal.aborted).toBe(false);
    await clock.advance(1);
    await drained;
    expect(await first.namesOf({ deliveryId })).toEqual(["returned"]);

    const ops = createPlayedChannel([DELIVERED]);
    await using second = await startAnnouncing({ ops }, { clock, wrapStore: () => first.store });
    expect(ops.calls.map(({ sent }) => sent.turnId)).toEqual([turnId]);
    expect(await second.namesOf({ deliveryId })).toEqual(["returned", "delivered"]);
  });

  it("does not change the state and the reason of a reply that was being retried", async () => {
    const ops = createPlayedChannel([failing()]);
    await using core = await startAnnouncing({ ops });
    const { turnId } = await core.announce();
    const stateOf = async () => (await core.store.getTurn(turnId))?.announcement;
    const retrying = { state: "retrying", reason: "HTTP 503" };
    expect(await stateOf()).toMatchObject(retrying);
    await core.clock.block(10_000);
    expect(ops.calls).toHaveLength(2);
    const drained = core.core.outbox.drain(1_000);
    await core.clock.advance(1_000);
    await drained;
    expect(await stateOf()).toMatchObject(retrying);
  });

  it("MUST lose nothing when it is killed: another gateway sends the announcement when the lease expires", async () => {
    const clock = createManualClock();
    const hanging = createPlayedChannel();
    let isDead = false;
    const memory = createMemoryStore({ clock });
    const mortal: WrapStore = () => ({
      ...memory,
      claimOutgoing: (request) => (isDead ? new Promise(() => {}) : memory.claimOutgoing(request)),
      extendClaims: (...claims) => (isDead ? new Promise(() => {}) : memory.extendClaims(...claims)),
    });
    const first = await startAnnouncing({ ops: hanging }, { clock, wrapStore: mortal });
    const { turnId, deliveryId } = await first.announce();
    isDead = true;
    const ops = createPlayedChannel([DELIVERED]);
    await using second = await startAnnouncing({ ops }, { clock, wrapStore: () => memory });
    await clock.advance(29_000);
    expect(ops.calls).toEqual([]);
    await clock.block(2_000);
    expect(ops.calls.map(({ sent }) => sent.turnId)).toEqual([turnId]);
    // The killed gateway resumes.
    hanging.calls[0]?.answer(DELIVERED);
    await clock.settle();
    expect(await second.namesOf({ deliveryId })).toEqual(["delivered"]);
  });

  it("does not wait for a channel whose last announcement got no answer", async () => {
    const silent: Outcome = {
      kind: "failed",
      code: undefined,
      reason: "no answer within 15 s",
      retryAfterMs: undefined,
    };
    const dead = createPlayedChannel([silent]);
    const busy = createPlayedChannel([failing()]);
    await using core = await startAnnouncing({ dead, busy });
    for (const channel of ["dead", "busy"]) {
      for (let n = 0; n < 6; n++) await core.announce({ channel, session: `webhook:${channel}-${n}` });
    }
    expect([dead.waiting.size, busy.waiting.size]).toEqual([1, 1]);
    const drained = core.core.outbox.drain(30_000);
    for (const call of busy.waiting) call.answer(DELIVERED);
    await core.clock.settle();
    expect([dead.calls.length, busy.waiting.size]).toEqual([2, 4]);
    expect(dead.calls[1]?.signal.aborted).toBe(false);
    for (const call of busy.waiting) call.answer(DELIVERED);
    await drained;
    expect([dead.calls.length, busy.calls.length]).toEqual([2, 6]);
    expect(dead.calls[1]?.signal.aborted).toBe(true);
  });

  it("also stops if the store does not answer", async () => {
    const silent: WrapStore = () => ({ claimOutgoing: () => new Promise(() => {}) });
    const core = await startAnnouncing(undefined, { wrapStore: silent });
    const drained = core.core.outbox.drain(0);
    await core.clock.advance(1_000);
    await drained;
  });

  it("leaves no timer", async () => {
    const timersAfter = async (outcome: Outcome) => {
      const clock = createManualClock();
      await using core = await startAnnouncing({ ops: createPlayedChannel([outcome]) }, { clock });
      await core.announce();
      await core.core.outbox.drain(0);
      return clock.timers();
    };
    expect(await timersAfter(failing(HOUR))).toBe(await timersAfter(DELIVERED));
  });
});
