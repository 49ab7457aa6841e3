import { describe, expect, it } from "vitest";
import { createPlayedChannel, DELIVERED, failing } from "#test/channels/played.ts";
import { startAnnouncing } from "./start-announcing.ts";

describe("one channel", () => {
  it("has at most four announcements in progress, and delays no other channel", async () => {
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
      detail: "Last delivery failed: HTTP 503. 1 reply is waiting.",
    });
    expect(await core.healthOf("quiet")).toMatchObject({ status: "ok" });
    await core.clock.advance(5_000);
    expect(await core.healthOf("ops")).toMatchObject({ status: "ok" });
  });
});

it("share a limit of 64 announcements in progress", async () => {
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
