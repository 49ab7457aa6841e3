import { describe, expect, test } from "vitest";
import { DeliveryFeed, type DeliveryFollower } from "#core/recorder/delivery-feed.ts";
import { startGateway } from "#test/harness/gateway.ts";
import { hookOf } from "../stores/deliveries.ts";
import { silent } from "../stores/world.ts";

describe("the feed of deliveries", () => {
  /** A feed of a gateway's store, whose timers fire when the test says so. */
  async function openFeed() {
    const gateway = await startGateway();
    const { store, events } = gateway.gateway;
    const timers: { ms: number; fire: () => void }[] = [];
    const after = (ms: number, fire: () => void) => {
      timers.push({ ms, fire });
      return () => {};
    };
    const clock = { now: Date.now, monotonic: Date.now, after };
    const feed = new DeliveryFeed({ store, events, clock, hide: (text) => text });
    const unwatch = store.watch({ ...silent, delivery: (id, change) => feed.add(id, change) });
    const news: string[] = [];
    const losses: number[] = [];
    const follower: DeliveryFollower = {
      tell: (some) => void news.push(...some.map(({ name, delivery }) => `${name} ${delivery.deliveryId}`)),
      miss: () => void losses.push(news.length),
    };
    const record = (n: number) =>
      store.recordDelivery(hookOf(idOf(n), { answer: "unmatched" }), {
        entries: 100_000,
        bytes: 2 ** 28,
        refused: 100,
      });
    return {
      feed,
      follower,
      news,
      losses,
      timers,
      record,
      /** Lets the collection time of changes pass, and returns it. */
      async collect(): Promise<number | undefined> {
        await expect.poll(() => timers.length).toBe(1);
        const timer = timers.shift();
        timer?.fire();
        return timer?.ms;
      },
      async [Symbol.asyncDispose]() {
        unwatch();
        feed.close();
        await gateway[Symbol.asyncDispose]();
      },
    };
  }

  function idOf(n: number): string {
    return `dlv_${String(n).padStart(26, "0")}`;
  }

  test("reports each delivery of a burst once, in order, and sets no timer without changes", async () => {
    await using on = await openFeed();
    await on.record(0);
    expect(on.timers).toEqual([]);
    const unfollow = on.feed.follow(on.follower);
    expect(on.timers).toEqual([]);
    for (let n = 1; n <= 100; n++) await on.record(n);
    expect(on.timers).toHaveLength(1);
    for (const n of [5, 5, 0]) on.feed.add(idOf(n), "outcome");
    await on.collect();
    await expect.poll(() => on.news.length).toBe(101);
    const recorded = Array.from({ length: 100 }, (_, n) => `delivery.recorded ${idOf(n + 1)}`);
    expect(on.news).toEqual([...recorded, `delivery.changed ${idOf(0)}`]);
    // Its outcome is the reported one.
    on.feed.add(idOf(5), "outcome");
    await on.collect();
    await on.record(101);
    await on.collect();
    await expect.poll(() => on.news.at(-1)).toBe(`delivery.recorded ${idOf(101)}`);
    expect(on.news).toHaveLength(102);
    unfollow();
    await on.record(102);
    expect(on.timers).toEqual([]);
  });

  test("omits changes above the limit, reports each loss once, and then collects for longer", async () => {
    await using on = await openFeed();
    on.feed.follow(on.follower);
    for (let n = 0; n < 2_500; n++) await on.record(n);
    const usual = await on.collect();
    await expect.poll(() => on.losses).toEqual([2_000]);
    on.feed.lose();
    await expect.poll(() => on.timers.length).toBe(1);
    await on.record(2_500);
    const longer = await on.collect();
    await expect.poll(() => on.losses).toEqual([2_000, 2_001]);
    expect(longer).toBeGreaterThan(usual as number);
  });

  test("omits deliveries that are no longer stored", async () => {
    await using on = await openFeed();
    on.feed.follow(on.follower);
    on.feed.add("dlv_gone", "outcome");
    await on.record(1);
    await on.collect();
    await expect.poll(() => on.news).toEqual([`delivery.recorded ${idOf(1)}`]);
  });

  test("reports each outcome again after a loss, because the last one may have been omitted", async () => {
    await using on = await openFeed();
    on.feed.follow(on.follower);
    await on.record(1);
    await on.collect();
    await expect.poll(() => on.news).toEqual([`delivery.recorded ${idOf(1)}`]);
    on.feed.lose();
    await on.collect();
    await expect.poll(() => on.losses).toEqual([1]);
    on.feed.add(idOf(1), "outcome");
    await on.collect();
    await expect.poll(() => on.news.slice(1)).toEqual([`delivery.changed ${idOf(1)}`]);
  });
});
