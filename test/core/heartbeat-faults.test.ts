import { describe, expect, it } from "vitest";
import { GatewayError } from "#kit/errors.ts";
import { newId } from "#kit/ids.ts";
import type { Store } from "#store/store.ts";
import { type BeatingCore, EVERY, startBeating } from "./beating-core.ts";

describe("a store that fails", () => {
  const failing = (method: "claimBeats" | "readQueuedEvents" | "endBeat" | "planBeat" | "getTurn", times: number) => {
    const failures = { left: times };
    const wrapStore = (store: Store): Partial<Store> => ({
      [method]: async (...of: unknown[]) => {
        if (failures.left-- > 0) throw new GatewayError("store-unavailable");
        return await (store[method] as (...of: unknown[]) => Promise<unknown>)(...of);
      },
    });
    return { wrapStore, failures };
  };

  it("at getTurn, which is asked where no end was heard, makes a beat late, and no more", async () => {
    const { wrapStore, failures } = failing("getTurn", 3);
    await using core = await startBeating({ wrapStore });
    const events = await core.queueMany(2);
    await core.beat();
    await core.clock.advance(60_000);
    expect(failures.left).toBeLessThanOrEqual(0);
    await core.endAll();
    await core.clock.advance(15_000);
    expect(new Set(await core.statusesOf(events))).toEqual(new Set(["handled"]));
  });

  it.each(["claimBeats", "readQueuedEvents", "endBeat", "planBeat"] as const)(
    "at %s makes a beat late, and no more",
    async (method) => {
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
    },
  );

  it("for long leaves a beat that could not be ended to the end of its lease", async () => {
    const { wrapStore } = failing("endBeat", 5);
    await using core = await startBeating({ wrapStore });
    await core.beat();
    await core.clock.advance(60_000);
    expect((core.nextAt() ?? 0) - core.clock.now()).toBeGreaterThan(EVERY / 2);
    await core.queue("one");
    await core.beat();
    expect(core.handed()).toEqual([["one"]]);
  });
});

describe("a beat that is held", () => {
  const claimAs = (core: BeatingCore, node: string) =>
    core.store.claimBeats({ now: core.clock.now(), node, leaseMs: 30_000, agents: ["main"] });

  it("stays held as long as its turns run", async () => {
    await using core = await startBeating();
    await core.queue("long");
    await core.beat();
    for (let n = 0; n < 10; n++) {
      await core.clock.advance(60_000);
      expect((await claimAs(core, "node_other")).beats).toEqual([]);
    }
    await core.end(await core.scripted.next());
    expect(await core.logged("beat.ran")).toHaveLength(1);
  });

  it.each([
    ["that another node has taken over while this one stood still ends without a word", false],
    ["whose events cannot be taken, though it is held, is told of as what nobody expects", true],
  ])("%s", async (_, isOurs) => {
    await using core = await startBeating({
      wrapStore: (store) => ({
        startTurn: async (order) => {
          if (order.events) throw new GatewayError("internal", "An event is not there to be taken.");
          return await store.startTurn(order);
        },
        extendBeat: async () => isOurs,
      }),
    });
    await core.queue("one");
    await core.beat();
    expect((await core.logged("unexpected.error")).length > 0).toBe(isOurs);
    expect((await core.logged("beat.ran")).length).toBeGreaterThan(0);
  });

  it("of whose events a node that had lost it took some late goes on with the others", async () => {
    let isLate = true;
    await using core = await startBeating({
      wrapStore: (store) => ({
        startTurn: async (order) => {
          const { events } = order;
          if (events && isLate) {
            isLate = false;
            const ids = { turnId: newId("turn", order.now), messageId: newId("msg", order.now) };
            await store.startTurn({
              ...order,
              ...ids,
              claim: undefined,
              events: { ...events, ids: events.ids.slice(0, 1) },
            });
          }
          return await store.startTurn(order);
        },
      }),
    });
    const events = await core.queueMany(3);
    await core.beat();
    for (let n = 0; n < 3; n++) await core.endAll();
    expect(await core.logged("unexpected.error")).toEqual([]);
    expect(await core.logged("beat.ran")).toMatchObject([{ events: 2, turns: 1 }]);
    expect(new Set(await core.statusesOf(events))).toEqual(new Set(["handled"]));
  });

  it("that another node has taken over starts no other turn, and none is handed over twice", async () => {
    let isCut = true;
    await using first = await startBeating({
      wrapStore: (store) => ({
        durable: true,
        extendBeat: async (...of) => {
          if (isCut) throw new GatewayError("store-unavailable");
          return await store.extendBeat(...of);
        },
      }),
    });
    const events = await first.queueMany(250);
    await first.beat();
    const run = await first.scripted.next();
    await first.clock.advance(20_000);
    await using second = await startBeating({ clock: first.clock, wrapStore: () => first.store });
    await first.clock.advance(15_000);
    expect(await first.store.readBeat("main")).toMatchObject({ running: true });
    isCut = false;
    await first.clock.advance(10_000);
    await first.end(run);
    for (let n = 0; n < 6; n++) {
      await first.endAll();
      await second.endAll();
    }
    const handed = [...first.handed(), ...second.handed()].flat().sort();
    expect(handed).toEqual(events.map(({ text }) => text).sort());
    // Which of the two runs a turn says nothing of who started it.
    expect(await first.logged("beat.ran")).toMatchObject([{ events: 100, turns: 1 }]);
    expect(await second.logged("beat.ran")).toMatchObject([{ events: 150, turns: 2 }]);
    expect(new Set(await first.statusesOf(events))).toEqual(new Set(["handled"]));
  });

  it("notices within seconds that its turn has ended when nobody told it", async () => {
    await using core = await startBeating({
      // Another node ran the turn, and its news got lost.
      wrapStore: (store) => ({ watch: (watcher) => store.watch({ ...watcher, entries: () => {} }) }),
    });
    await core.queueMany(101);
    await core.beat();
    for (let n = 0; n < 2; n++) {
      (await core.scripted.next()).end();
      await core.clock.advance(10_000);
    }
    expect(core.store.stats().eventsQueued).toBe(0);
    expect(await core.logged("beat.ran")).toMatchObject([{ events: 101 }]);
  });
});
