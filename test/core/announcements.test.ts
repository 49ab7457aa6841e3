import { describe, expect, it } from "vitest";
import { createEchoBackend } from "#backends/echo.ts";
import { createPlayedChannel, DELIVERED, failing, GONE } from "#test/channels/played.ts";
import { START } from "#test/harness/clock.ts";
import { startAnnouncing } from "./start-announcing.ts";

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
        sessionId: "webhook:a",
        agent: "main",
        channel: "ops",
        model: undefined,
        hops: 0,
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
        reason: "HTTP 503; retried for one day",
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
      { name: "announcement.failed", detail: { status: 410, reason: "410 Gone" } },
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
      detail: { attempt: 2, reason: "the channel was removed from the configuration" },
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
      { name: "announcement.failed", detail: { reason: "it passed through 3 announcements or agents, as in a loop" } },
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
