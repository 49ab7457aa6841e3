import { describe, expect, it } from "vitest";
import { createEchoBackend } from "#backends/echo.ts";
import { LONGEST_CALL_MS, type Outcome } from "#channels/channel.ts";
import { createMemoryStore } from "#store/memory/memory.ts";
import { createPlayedChannel, DELIVERED, failing, GONE } from "#test/channels/played.ts";
import { createManualClock, START } from "#test/harness/clock.ts";
import { startAnnouncing, storeWith } from "./start-announcing.ts";

const DAY = 86_400_000;
const HOUR = 3_600_000;

describe("an announcement", () => {
  it("tells the channel of a turn that completed, once", async () => {
    const ops = createPlayedChannel([DELIVERED]);
    await using core = await startAnnouncing({ ops });
    const { turnId, deliveryId } = await core.announce({ text: "Three alerts." });
    expect(ops.calls.map(({ reply }) => reply)).toEqual([
      {
        turnId,
        deliveryId,
        ...{ sessionId: "webhook:a", agent: "main", channel: "ops", model: undefined, hops: 0 },
        reply: "Three alerts.",
        usage: { input: 4, output: 4 },
        createdAt: START,
        endedAt: START,
      },
    ]);
    expect(await core.told({ deliveryId })).toEqual([
      { at: START, name: "announcement.delivered", detail: { channel: "ops", attempt: 1, status: 200, ms: 0 } },
    ]);
    await core.clock.block(DAY);
    expect(ops.calls).toHaveLength(1);
    expect(core.store.stats().announcements).toBe(0);
  });

  it("is not made of a turn that failed, or that did not ask for it", async () => {
    const ops = createPlayedChannel();
    const backend = createEchoBackend({ fail: "no" });
    await using broken = await startAnnouncing({ ops }, { backend });
    await broken.announce();
    await using core = await startAnnouncing({ ops });
    await core.ended(await core.start());
    await core.clock.advance(1_000);
    expect(ops.calls).toEqual([]);
  });

  it("is tried again at growing intervals with jitter for a day, then it has failed", async () => {
    const ops = createPlayedChannel(Array.from({ length: 200 }, () => failing()));
    await using core = await startAnnouncing({ ops });
    const { turnId, deliveryId } = await core.announce();
    for (;;) {
      const last = (await core.told({ deliveryId })).at(-1);
      if (last?.name !== "announcement.retried") break;
      const wait = Number(last.detail.retry_in_ms);
      await core.clock.block(wait - 1);
      await core.clock.block(1);
    }
    const told = await core.told({ deliveryId });
    const last = told.pop();
    expect(last).toMatchObject({
      name: "announcement.failed",
      at: START + DAY,
      detail: {
        channel: "ops",
        attempt: told.length + 1,
        status: 503,
        reason: "it answered 503; it was tried for a day",
      },
    });
    const waits = told.map(({ detail }) => Number(detail.retry_in_ms));
    for (const [n, wait] of waits.slice(0, -1).entries()) {
      const full = Math.min(5_000 * 2 ** n, HOUR);
      expect(wait).toBeGreaterThanOrEqual(full / 2);
      expect(wait).toBeLessThanOrEqual(full);
    }
    expect(new Set(waits.slice(11, -1)).size).toBeGreaterThan(5);
    expect(ops.calls).toHaveLength(told.length + 1);
    expect(core.store.stats().announcements).toBe(0);
    expect(await core.turns.get(turnId)).toMatchObject({ status: "completed" });
    expect(await core.logged("announcement.failed")).toHaveLength(1);
  });

  it("is tried again after as long as the receiver asks for, an hour at most", async () => {
    const ops = createPlayedChannel([failing(600_000), failing(DAY), DELIVERED]);
    await using core = await startAnnouncing({ ops });
    const { deliveryId } = await core.announce();
    await core.clock.block(599_999);
    expect(ops.calls).toHaveLength(1);
    await core.clock.block(1);
    expect(ops.calls).toHaveLength(2);
    await core.clock.block(HOUR);
    expect(await core.namesOf({ deliveryId })).toEqual(["retried", "retried", "delivered"]);
  });

  it("leaves a channel alone that asks for it, also with others, and goes on afterwards", async () => {
    const ops = createPlayedChannel([failing(60_000), DELIVERED, DELIVERED]);
    const other = createPlayedChannel([DELIVERED]);
    await using core = await startAnnouncing({ ops, other });
    await core.announce();
    await core.announce({ session: "webhook:b" });
    await core.announce({ channel: "other", session: "webhook:c" });
    expect([ops.calls.length, other.calls.length]).toEqual([1, 1]);
    await core.clock.block(59_999);
    expect(ops.calls).toHaveLength(1);
    await core.clock.block(1);
    expect(ops.calls).toHaveLength(3);
  });

  it("goes on afterwards with the others before the one that found the channel busy", async () => {
    const ops = createPlayedChannel([failing(1_000), DELIVERED]);
    await using core = await startAnnouncing({ ops });
    await core.announce();
    await core.announce({ session: "webhook:b" });
    await core.clock.advance(1_000);
    expect(ops.calls.map(({ reply }) => reply.sessionId)).toEqual(["webhook:a", "webhook:b"]);
  });

  it("is not tried for ever by a wall clock that went back: F14", async () => {
    const ops = createPlayedChannel(Array.from({ length: 200 }, () => failing()));
    await using core = await startAnnouncing({ ops });
    await core.announce();
    core.clock.jump(-365 * DAY);
    for (let hours = 0; hours < 150; hours++) await core.clock.block(HOUR);
    expect(ops.calls).toHaveLength(100);
    expect(core.store.stats().announcements).toBe(0);
  });

  it("has failed at once when the receiver wants no more", async () => {
    const ops = createPlayedChannel([GONE]);
    await using core = await startAnnouncing({ ops });
    const { deliveryId } = await core.announce();
    expect(await core.told({ deliveryId })).toMatchObject([
      { name: "announcement.failed", detail: { status: 410, reason: "it answered 410, gone" } },
    ]);
    expect(core.store.stats().announcements).toBe(0);
  });

  it("has failed, with the reason, when its channel left the configuration", async () => {
    const ops = createPlayedChannel([failing()]);
    await using core = await startAnnouncing({ ops });
    const { deliveryId } = await core.announce();
    await core.reconfigure({});
    await core.clock.advance(5_000);
    expect((await core.told({ deliveryId })).at(-1)).toMatchObject({
      name: "announcement.failed",
      detail: { attempt: 2, reason: "the channel left the configuration" },
    });
    expect(ops.calls).toHaveLength(1);
  });

  it("goes to the channel as it is configured now, at once where the one before asked to be left alone", async () => {
    const before = createPlayedChannel([failing(HOUR)]);
    const after = createPlayedChannel([DELIVERED]);
    await using core = await startAnnouncing({ ops: before });
    await core.announce();
    await core.announce({ session: "webhook:b" });
    await core.reconfigure({ ops: after });
    await core.clock.settle();
    expect([before.calls.length, after.calls.length]).toEqual([1, 1]);
  });

  it("MUST not be sent past 3 hops, and the turn completes: F28", async () => {
    const ops = createPlayedChannel([DELIVERED]);
    await using core = await startAnnouncing({ ops });
    const near = await core.announce({ hops: 2 });
    const far = await core.announce({ hops: 3, session: "webhook:b" });
    expect(ops.calls.map(({ reply }) => reply.turnId)).toEqual([near.turnId]);
    expect(await core.turns.get(far.turnId)).toMatchObject({ status: "completed", reply: "hello" });
    expect(await core.told(far)).toMatchObject([
      { name: "announcement.failed", detail: { reason: "it came through 3 announcements, as in a loop" } },
    ]);
  });

  it("is dropped with its session, before it is sent and while it is", async () => {
    const ops = createPlayedChannel([failing()]);
    await using core = await startAnnouncing({ ops });
    await core.announce();
    await core.store.deleteSession("webhook:a", core.clock.now());
    await core.clock.advance(60_000);
    expect(ops.calls).toHaveLength(1);
    await core.announce({ session: "webhook:b" });
    await core.store.deleteSession("webhook:b", core.clock.now());
    ops.calls.at(-1)?.answer(failing());
    await core.clock.advance(60_000);
    expect(ops.calls).toHaveLength(2);
    expect(core.store.stats().announcements).toBe(0);
    expect(await core.logged("announcement.retried")).toHaveLength(1);
  });

  it("is tried again when the channel itself breaks", async () => {
    const ops = createPlayedChannel();
    await using core = await startAnnouncing({ ops });
    const { deliveryId } = await core.announce();
    ops.calls[0]?.fail(new Error("a bug"));
    await core.clock.advance(5_000);
    expect(ops.calls).toHaveLength(2);
    expect(await core.told({ deliveryId })).toMatchObject([{ detail: { reason: "the gateway failed" } }]);
    expect(await core.logged("unexpected.error")).toHaveLength(1);
  });
});

describe("one channel", () => {
  it("never has more than four under way, and holds up no other", async () => {
    const dead = createPlayedChannel();
    const live = createPlayedChannel(Array.from({ length: 10 }, () => DELIVERED));
    await using core = await startAnnouncing({ dead, live });
    for (let n = 0; n < 100; n++) await core.announce({ channel: "dead", session: `webhook:${n}` });
    for (let n = 0; n < 10; n++) await core.announce({ channel: "live", session: `webhook:live-${n}` });
    expect([dead.calls.length, live.calls.length]).toEqual([4, 10]);
    dead.calls[0]?.answer(failing());
    await core.clock.settle();
    expect(dead.calls).toHaveLength(5);
    expect(dead.waiting.size).toBe(4);
  });

  it("is degraded in health while its last announcement failed", async () => {
    const ops = createPlayedChannel([failing(), DELIVERED]);
    await using core = await startAnnouncing({ ops, quiet: createPlayedChannel() });
    expect(await core.healthOf("ops")).toEqual({ name: "channels.ops", status: "ok", detail: null });
    await core.announce();
    expect(await core.healthOf("ops")).toEqual({
      name: "channels.ops",
      status: "degraded",
      detail: "Its last announcement failed: it answered 503. In all 1 wait.",
    });
    expect(await core.healthOf("quiet")).toMatchObject({ status: "ok" });
    await core.clock.advance(5_000);
    expect(await core.healthOf("ops")).toMatchObject({ status: "ok" });
  });
});

it("has at most 64 under way in all", async () => {
  const channels = Object.fromEntries(Array.from({ length: 20 }, (_, n) => [`c${n}`, createPlayedChannel()]));
  await using core = await startAnnouncing(channels);
  for (const channel of Object.keys(channels)) {
    for (let n = 0; n < 4; n++) await core.announce({ channel, session: `webhook:${channel}-${n}` });
  }
  const underWay = () => Object.values(channels).reduce((sum, { waiting }) => sum + waiting.size, 0);
  expect(underWay()).toBe(64);
  for (const { waiting } of Object.values(channels)) for (const call of waiting) call.answer(DELIVERED);
  await core.clock.settle();
  expect(underWay()).toBe(16);
});

describe("a store that fails", () => {
  const brokenFor = (times: number) => {
    let left = times;
    return storeWith((store) => ({
      endAnnouncement: async (...args) => {
        if (left-- > 0) throw new Error("the store is away");
        return store.endAnnouncement(...args);
      },
    }));
  };

  it("is told again of what was delivered, a few times", async () => {
    const ops = createPlayedChannel([DELIVERED]);
    await using core = await startAnnouncing({ ops }, { wrapStore: brokenFor(2) });
    const { deliveryId } = await core.announce();
    await core.clock.advance(1_200);
    expect(await core.namesOf({ deliveryId })).toEqual(["delivered"]);
    expect(ops.calls).toHaveLength(1);
  });

  it("MUST get it sent once more when it never heard of the end: at least once", async () => {
    const ops = createPlayedChannel([DELIVERED, DELIVERED]);
    await using core = await startAnnouncing({ ops }, { wrapStore: brokenFor(5) });
    const { turnId, deliveryId } = await core.announce();
    await core.clock.advance(70_000);
    expect(ops.calls.map(({ reply }) => reply.turnId)).toEqual([turnId, turnId]);
    expect(await core.namesOf({ deliveryId })).toEqual(["delivered"]);
    expect(await core.logged("store.failed")).toHaveLength(5);
  });

  it("holds announcements up only as long as it fails", async () => {
    const ops = createPlayedChannel([DELIVERED]);
    let isAway = true;
    const away = storeWith((store) => ({
      claimAnnouncements: async (...args) => {
        if (isAway) throw new Error("the store is away");
        return store.claimAnnouncements(...args);
      },
    }));
    await using core = await startAnnouncing({ ops }, { wrapStore: away });
    await core.announce();
    await core.clock.advance(3_000);
    expect(ops.calls).toHaveLength(0);
    isAway = false;
    await core.clock.advance(1_000);
    expect(ops.calls).toHaveLength(1);
  });

  it("keeps a lease for longer than any call lasts", async () => {
    const leases: number[] = [];
    const spied = storeWith((store) => ({
      claimAnnouncements: (request) => {
        leases.push(request.leaseMs);
        return store.claimAnnouncements(request);
      },
    }));
    await using core = await startAnnouncing(undefined, { wrapStore: spied });
    await core.announce();
    // And for what the store takes to hear of the end.
    expect(Math.min(...leases)).toBeGreaterThan(LONGEST_CALL_MS + 20_000);
  });
});

describe("a gateway that stops", () => {
  it("waits for what is under way, and sends what a store that forgets still holds", async () => {
    const ops = createPlayedChannel();
    await using core = await startAnnouncing({ ops });
    for (let n = 0; n < 6; n++) await core.announce({ session: `webhook:${n}` });
    const drained = core.core.announcements.drain(30_000);
    for (let n = 0; n < 6; n++) {
      ops.calls[n]?.answer(DELIVERED);
      await core.clock.settle();
    }
    await drained;
    expect(ops.calls).toHaveLength(6);
    expect(core.store.stats().announcements).toBe(0);
  });

  it("leaves to the next one what a store that remembers still holds", async () => {
    const ops = createPlayedChannel();
    const durable = storeWith(() => ({ durable: true }));
    await using core = await startAnnouncing({ ops }, { wrapStore: durable });
    for (let n = 0; n < 6; n++) await core.announce({ session: `webhook:${n}` });
    const drained = core.core.announcements.drain(30_000);
    for (const { answer } of ops.calls) answer(DELIVERED);
    await drained;
    expect(ops.calls).toHaveLength(4);
    expect(await core.logged("announcements.left")).toMatchObject([{ left: 2, kept: true }]);
  });

  it("MUST give back what does not end in time, for the next one to send", async () => {
    const clock = createManualClock();
    const hanging = createPlayedChannel();
    await using first = await startAnnouncing({ ops: hanging }, { clock });
    const { turnId, deliveryId } = await first.announce();
    const drained = first.core.announcements.drain(30_000);
    await clock.advance(29_999);
    expect(hanging.calls[0]?.signal.aborted).toBe(false);
    await clock.advance(1);
    await drained;
    expect(await first.namesOf({ deliveryId })).toEqual(["returned"]);

    const ops = createPlayedChannel([DELIVERED]);
    await using second = await startAnnouncing({ ops }, { clock, wrapStore: () => first.store });
    expect(ops.calls.map(({ reply }) => reply.turnId)).toEqual([turnId]);
    expect(await second.namesOf({ deliveryId })).toEqual(["returned", "delivered"]);
  });

  it("MUST lose nothing when it dies: another sends it as the lease ends", async () => {
    const clock = createManualClock();
    const hanging = createPlayedChannel();
    let isDead = false;
    const mortal = storeWith((store) => ({
      claimAnnouncements: (request) => (isDead ? new Promise(() => {}) : store.claimAnnouncements(request)),
    }));
    const memory = createMemoryStore({ clock });
    const first = await startAnnouncing({ ops: hanging }, { clock, wrapStore: () => mortal(memory) });
    const { turnId, deliveryId } = await first.announce();
    isDead = true;
    const ops = createPlayedChannel([DELIVERED]);
    await using second = await startAnnouncing({ ops }, { clock, wrapStore: () => memory });
    await clock.advance(59_000);
    expect(ops.calls).toEqual([]);
    await clock.block(2_000);
    expect(ops.calls.map(({ reply }) => reply.turnId)).toEqual([turnId]);
    // The dead one wakes.
    hanging.calls[0]?.answer(DELIVERED);
    await clock.settle();
    expect(await second.namesOf({ deliveryId })).toEqual(["delivered"]);
  });

  it("waits for no channel where nobody answered the last time", async () => {
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
    expect([dead.waiting.size, busy.waiting.size]).toEqual([4, 4]);
    const drained = core.core.announcements.drain(30_000);
    for (const call of busy.waiting) call.answer(failing());
    await core.clock.settle();
    expect([dead.calls.length, busy.calls.length]).toEqual([5, 6]);
    expect(dead.calls[1]?.signal.aborted).toBe(false);
    for (const call of busy.waiting) call.answer(DELIVERED);
    await drained;
    expect([dead.calls.length, busy.calls.length]).toEqual([5, 6]);
    expect(dead.calls[1]?.signal.aborted).toBe(true);
  });

  it("stops, too, when the store does not answer", async () => {
    const silent = storeWith(() => ({ claimAnnouncements: () => new Promise(() => {}) }));
    const core = await startAnnouncing(undefined, { wrapStore: silent });
    const drained = core.core.announcements.drain(0);
    await core.clock.advance(1_000);
    await drained;
  });

  it("leaves no timer behind", async () => {
    const timersAfter = async (outcome: Outcome) => {
      const clock = createManualClock();
      await using core = await startAnnouncing({ ops: createPlayedChannel([outcome]) }, { clock });
      await core.announce();
      await core.core.announcements.drain(0);
      return clock.timers();
    };
    expect(await timersAfter(failing(HOUR))).toBe(await timersAfter(DELIVERED));
  });
});
