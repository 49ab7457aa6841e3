import { describe, expect, it } from "vitest";
import { createEchoBackend } from "#backends/echo.ts";
import { createPlayedChannel, DELIVERED, failing, GONE } from "#test/channels/played.ts";
import { START } from "#test/harness/clock.ts";
import { startAnnouncing } from "./start-announcing.ts";

const DAY = 86_400_000;
const HOUR = 3_600_000;

describe("an announcement", () => {
  it("is sent once to the channel of a completed turn", async () => {
    const ops = createPlayedChannel([DELIVERED]);
    await using core = await startAnnouncing({ ops });
    const { turnId, deliveryId } = await core.announce({ text: "Three alerts." });
    expect(ops.calls.map(({ sent }) => sent)).toEqual([
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

  it("is not sent for a failed turn, or for a turn that did not request one", async () => {
    const ops = createPlayedChannel();
    const backend = createEchoBackend({ fail: "no" });
    await using broken = await startAnnouncing({ ops }, { backend });
    await broken.announce();
    await using core = await startAnnouncing({ ops });
    await core.ended(await core.start());
    await core.clock.advance(1_000);
    expect(ops.calls).toEqual([]);
  });

  it("is retried at growing intervals with jitter for a day, and then fails", async () => {
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

  it("is retried after the time that the receiver requests, but within an hour", async () => {
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

  it("is not sent to a channel that requested a pause, for other turns too, until the pause is over", async () => {
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

  it("is sent after the pause before the one that found the channel busy", async () => {
    const ops = createPlayedChannel([failing(1_000), DELIVERED]);
    await using core = await startAnnouncing({ ops });
    await core.announce();
    await core.announce({ session: "webhook:b" });
    await core.clock.advance(1_000);
    expect(ops.calls.map(({ sent }) => sent.sessionId)).toEqual(["webhook:a", "webhook:b"]);
  });

  it("is not retried forever if the wall clock is set back: F14", async () => {
    const ops = createPlayedChannel(Array.from({ length: 200 }, () => failing()));
    await using core = await startAnnouncing({ ops });
    await core.announce();
    core.clock.jump(-365 * DAY);
    for (let hours = 0; hours < 150; hours++) await core.clock.block(HOUR);
    expect(ops.calls).toHaveLength(100);
    expect(core.store.stats().announcements).toBe(0);
  });

  it("fails at once if the receiver is permanently closed", async () => {
    const ops = createPlayedChannel([GONE]);
    await using core = await startAnnouncing({ ops });
    const { deliveryId } = await core.announce();
    expect(await core.told({ deliveryId })).toMatchObject([
      { name: "announcement.failed", detail: { status: 410, reason: "410 Gone" } },
    ]);
    expect(core.store.stats().announcements).toBe(0);
  });

  it("fails, with the reason, if its channel was removed from the configuration", async () => {
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

  it("is sent to the channel of the current configuration, immediately if the previous channel requested a pause", async () => {
    const before = createPlayedChannel([failing(HOUR)]);
    const after = createPlayedChannel([DELIVERED]);
    await using core = await startAnnouncing({ ops: before });
    await core.announce();
    await core.announce({ session: "webhook:b" });
    await core.reconfigure({ ops: after });
    await core.clock.settle();
    expect([before.calls.length, after.calls.length]).toEqual([1, 1]);
  });

  it("MUST not be sent after 3 hops, and the turn completes: F28", async () => {
    const ops = createPlayedChannel([DELIVERED]);
    await using core = await startAnnouncing({ ops });
    const near = await core.announce({ hops: 2 });
    const far = await core.announce({ hops: 3, session: "webhook:b" });
    expect(ops.calls.map(({ sent }) => sent.turnId)).toEqual([near.turnId]);
    expect(await core.turns.get(far.turnId)).toMatchObject({ status: "completed", reply: "hello" });
    expect(await core.told(far)).toMatchObject([
      {
        name: "announcement.failed",
        detail: { reason: "it passed through 3 or more announcements or agents, as in a loop" },
      },
    ]);
  });

  it("is deleted with its session, before it is sent and meanwhile", async () => {
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

  it("is retried if the channel itself throws", async () => {
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
