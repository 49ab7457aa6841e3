import { describe, expect, it } from "vitest";
import type { Outcome } from "#channels/channel.ts";
import { createPlayedChannel, DELIVERED, failing } from "#test/channels/played.ts";
import { SHARED } from "#test/stores/shared-alone.ts";
import { startAnnouncing } from "./start-announcing.ts";

describe("one channel", () => {
  it("has at most four announcements in progress, and delays no other channel", async () => {
    const dead = createPlayedChannel();
    const live = createPlayedChannel(Array.from({ length: 10 }, () => DELIVERED));
    await using core = await startAnnouncing({ dead, live });
    for (let n = 0; n < 100; n++) await core.announce({ channel: "dead", session: `webhook:${n}` });
    for (let n = 0; n < 10; n++) await core.announce({ channel: "live", session: `webhook:live-${n}` });
    expect([dead.calls.length, live.calls.length]).toEqual([4, 10]);
    dead.calls[0]?.answer(DELIVERED);
    await core.clock.settle();
    expect(dead.calls).toHaveLength(5);
    expect(dead.waiting.size).toBe(4);
  });

  it("gets one announcement at a time after a failure, until it accepts one", async () => {
    const ops = createPlayedChannel();
    await using core = await startAnnouncing({ ops });
    for (let n = 0; n < 10; n++) await core.announce({ session: `webhook:${n}` });
    const answer = async (outcome: Outcome) => {
      const [first] = ops.waiting;
      first?.answer(outcome);
      await core.clock.settle();
      return ops.waiting.size;
    };
    const underWay: number[] = [];
    for (let n = 0; n < 6; n++) underWay.push(await answer(failing()));
    expect(underWay).toEqual([3, 2, 1, 1, 1, 1]);
    expect(ops.calls).toHaveLength(7);
    expect(await answer(DELIVERED)).toBe(3);
  });

  it("works, and gets as many at once as before, if it refuses only one announcement", async () => {
    const refused: Outcome = { kind: "refused", code: 200, reason: "Slack answered is_archived", isOfMessage: true };
    const ops = createPlayedChannel([refused]);
    await using core = await startAnnouncing({ ops });
    const { deliveryId } = await core.announce();
    expect(await core.namesOf({ deliveryId })).toEqual(["failed"]);
    expect(await core.healthOf("ops")).toMatchObject({ status: "ok" });
    for (let n = 0; n < 5; n++) await core.announce({ session: `webhook:${n}` });
    expect(ops.waiting.size).toBe(4);
  });

  it("is degraded in health while its last announcement failed", async () => {
    const ops = createPlayedChannel([failing(), DELIVERED]);
    await using core = await startAnnouncing({ ops, quiet: createPlayedChannel() });
    expect(await core.healthOf("ops")).toEqual({ name: "channels.ops", status: "ok", detail: null });
    await core.announce();
    expect(await core.healthOf("ops")).toEqual({
      name: "channels.ops",
      status: "degraded",
      detail: "Last delivery failed: HTTP 503. 1 reply is waiting.",
    });
    expect(await core.healthOf("quiet")).toMatchObject({ status: "ok" });
    await core.clock.advance(5_000);
    expect(await core.healthOf("ops")).toMatchObject({ status: "ok" });
  });
});

it("channels that hang, however many, do not delay another one", async () => {
  const hanging = Object.fromEntries(Array.from({ length: 20 }, (_, n) => [`c${n}`, createPlayedChannel()]));
  const live = createPlayedChannel(Array.from({ length: 10 }, () => DELIVERED));
  await using core = await startAnnouncing({ ...hanging, live });
  for (const channel of Object.keys(hanging)) {
    for (let n = 0; n < 5; n++) await core.announce({ channel, session: `webhook:${channel}-${n}` });
  }
  for (let n = 0; n < 10; n++) await core.announce({ channel: "live", session: `webhook:live-${n}` });
  expect(new Set(Object.values(hanging).map(({ waiting }) => waiting.size))).toEqual(new Set([4]));
  expect(live.calls).toHaveLength(10);
});

const HOUR = 3_600_000;

it("an announcement of a removed channel fails on a shared store after a day and the hour of the last attempt", async () => {
  await using core = await startAnnouncing(
    { ops: createPlayedChannel([failing()]) },
    { wrapStore: () => ({ shared: SHARED }) },
  );
  const announced = await core.announce();
  for (const hours of [0, 24, 0.9]) {
    await core.clock.advance(hours * HOUR);
    await core.reconfigure({});
    await core.clock.settle();
    expect(await core.namesOf(announced)).toEqual(["retried"]);
  }
  await core.clock.advance(0.2 * HOUR);
  await core.reconfigure({});
  await core.clock.settle();
  expect(await core.namesOf(announced)).toEqual(["retried", "failed"]);
});

it("the announcements of a removed channel are left to the other gateways of a shared store, also while one is being sent", async () => {
  const ops = createPlayedChannel();
  await using core = await startAnnouncing({ ops }, { wrapStore: () => ({ shared: SHARED }) });
  const announced: { turnId: string; deliveryId: string }[] = [];
  for (let n = 0; n < 6; n++) announced.push(await core.announce({ session: `webhook:${n}` }));
  expect(ops.calls).toHaveLength(4);
  await core.reconfigure({});
  ops.calls[0]?.answer(DELIVERED);
  await core.clock.settle();
  await core.clock.advance(5_000);
  expect(await Promise.all(announced.map(core.namesOf))).toEqual([["delivered"], [], [], [], [], []]);
});
