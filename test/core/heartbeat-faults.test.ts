import { describe, expect, it } from "vitest";
import { GatewayError } from "#kit/errors.ts";
import type { Store } from "#store/store.ts";
import { EVERY, startBeating } from "./beating-core.ts";

describe("a store that fails", () => {
  const failing = (method: "dueBeats" | "startBeat" | "planBeat", times: number) => {
    const failures = { left: times };
    const wrapStore = (store: Store): Partial<Store> => ({
      [method]: async (...of: unknown[]) => {
        if (failures.left-- > 0) throw new GatewayError("store-unavailable");
        return await (store[method] as (...of: unknown[]) => Promise<unknown>)(...of);
      },
    });
    return { wrapStore, failures };
  };

  it.each(["dueBeats", "startBeat", "planBeat"] as const)("at %s only delays a beat", async (method) => {
    const { wrapStore, failures } = failing(method, 3);
    await using core = await startBeating({ wrapStore });
    const events = await core.queueMany(150);
    await core.beat();
    for (let n = 0; n < 4; n++) {
      await core.clock.advance(15_000);
      await core.endAll();
    }
    expect(failures.left).toBeLessThanOrEqual(0);
    expect(new Set(await core.statusesOf(events))).toEqual(new Set(["handled"]));
    expect(core.handed().map(({ length }) => length)).toEqual([100, 50]);
    await core.clock.advance(60_000);
    expect((core.nextAt() ?? 0) - core.clock.now()).toBeGreaterThan(EVERY / 2);
  });

  it("during a beat leaves the beat in the store, and no other beat starts", async () => {
    let isAway = false;
    await using core = await startBeating({
      wrapStore: (store) => ({
        dueBeats: (agents) => (isAway ? Promise.reject(new GatewayError("store-unavailable")) : store.dueBeats(agents)),
      }),
    });
    const events = await core.queueMany(150);
    await core.beat();
    isAway = true;
    await core.end(await core.scripted.next());
    await core.clock.advance(600_000);
    expect(core.handed().map(({ length }) => length)).toEqual([100]);
    isAway = false;
    await core.clock.advance(1_000);
    await core.endAll();
    expect(core.handed().map(({ length }) => length)).toEqual([100, 50]);
    expect(await core.logged("beat.ran")).toMatchObject([{ events: 150, turns: 2 }]);
    expect(new Set(await core.statusesOf(events))).toEqual(new Set(["handled"]));
  });
});

describe("a beat of two gateways", () => {
  it("sends each event to the agent once, no matter which gateway starts a turn", async () => {
    await using first = await startBeating();
    const events = await first.queueMany(250);
    await using second = await startBeating({ clock: first.clock, wrapStore: () => first.store });
    await first.beat();
    for (let n = 0; n < 6; n++) {
      await first.endAll();
      await second.endAll();
    }
    const handed = [...first.handed(), ...second.handed()];
    expect(handed.map(({ length }) => length).sort()).toEqual([100, 100, 50]);
    expect(handed.flat().sort()).toEqual(events.map(({ text }) => text).sort());
    const ran = [...(await first.logged("beat.ran")), ...(await second.logged("beat.ran"))];
    expect(ran).toMatchObject([{ events: 250, turns: 3 }]);
  });

  it("continues on the remaining gateway", async () => {
    await using first = await startBeating({ wrapStore: () => ({ durable: true }) });
    const events = await first.queueMany(150);
    await first.beat();
    const run = await first.scripted.next();
    // The first gateway starts no further turns, as if it were suspended.
    first.core.heartbeat.stop();
    await using second = await startBeating({ clock: first.clock, wrapStore: () => first.store });
    await second.settle();
    expect(second.handed()).toEqual([]);
    await first.end(run);
    await second.settle();
    await second.endAll();
    expect([...first.handed(), ...second.handed()].flat()).toHaveLength(150);
    expect(await second.logged("beat.ran")).toMatchObject([{ events: 150, turns: 2 }]);
    expect(new Set(await first.statusesOf(events))).toEqual(new Set(["handled"]));
  });
});
