import { describe, expect, it } from "vitest";
import { createPlayedChannel, DELIVERED } from "#test/channels/played.ts";
import { startAnnouncing } from "./start-announcing.ts";
import type { WrapStore } from "./start-core.ts";

describe("a store that fails", () => {
  const brokenFor = (times: number): WrapStore => {
    let left = times;
    return (store) => ({
      endOutgoing: async (...args) => {
        if (left-- > 0) throw new Error("the store is away");
        return store.endOutgoing(...args);
      },
    });
  };

  it("is notified of a delivered announcement again, a few times", async () => {
    const ops = createPlayedChannel([DELIVERED]);
    await using core = await startAnnouncing({ ops }, { wrapStore: brokenFor(2) });
    const { deliveryId } = await core.announce();
    await core.clock.advance(1_200);
    expect(await core.namesOf({ deliveryId })).toEqual(["delivered"]);
    expect(ops.calls).toHaveLength(1);
  });

  it("MUST cause another delivery if it could not record the end of the first one: at least once", async () => {
    const ops = createPlayedChannel([DELIVERED, DELIVERED]);
    await using core = await startAnnouncing({ ops }, { wrapStore: brokenFor(5) });
    const { turnId, deliveryId } = await core.announce();
    await core.clock.advance(70_000);
    expect(ops.calls.map(({ sent }) => sent.turnId)).toEqual([turnId, turnId]);
    expect(await core.namesOf({ deliveryId })).toEqual(["delivered"]);
    expect(core.figures()).toContain('gateway_store_failures_total{operation="endOutgoing"} 5\n');
  });

  it("delays announcements only while it fails", async () => {
    const ops = createPlayedChannel([DELIVERED]);
    let isAway = true;
    const away: WrapStore = (store) => ({
      claimOutgoing: async (...args) => {
        if (isAway) throw new Error("the store is away");
        return store.claimOutgoing(...args);
      },
    });
    await using core = await startAnnouncing({ ops }, { wrapStore: away });
    await core.announce();
    await core.clock.advance(3_000);
    expect(ops.calls).toHaveLength(0);
    isAway = false;
    await core.clock.advance(1_000);
    expect(ops.calls).toHaveLength(1);
  });

  it("does not lose a lease during a call, and a call whose lease is lost ends immediately", async () => {
    const ops = createPlayedChannel();
    let isAway = false;
    const away: WrapStore = (store) => ({
      extendClaims: (claims, leaseMs) => (isAway ? Promise.resolve([...claims]) : store.extendClaims(claims, leaseMs)),
    });
    await using core = await startAnnouncing({ ops }, { wrapStore: away });
    const { deliveryId } = await core.announce();
    await core.clock.advance(300_000);
    expect(ops.calls).toHaveLength(1);
    isAway = true;
    await core.clock.advance(10_000);
    expect(ops.calls[0]?.signal.aborted).toBe(true);
    expect(await core.namesOf({ deliveryId })).toEqual(["returned"]);
  });
});
