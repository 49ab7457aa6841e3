import { describe, expect } from "vitest";
import type { BeatClaim } from "#store/store.ts";
import { failEvent, news, queueEvent, STREAM_KEEP } from "../inbound.ts";
import { testsOn } from "../tests-on.ts";
import { type Engine, LEASE_MS, type World } from "../world.ts";

function plan(world: World, delayMs: number | undefined, soonest = false, agent = "main") {
  return world.store.planBeat(agent, { now: world.clock.now(), delayMs, soonest });
}

function claim(world: World, agents: readonly string[] = ["main"], node = "node_a") {
  return world.store.claimBeats({ now: world.clock.now(), node, leaseMs: LEASE_MS, agents });
}

async function claimOne(world: World): Promise<BeatClaim> {
  const { beats } = await claim(world);
  if (!beats[0]) throw new Error("no beat is due");
  return beats[0];
}

function end(world: World, held: BeatClaim, delayMs = 60_000, ran?: { events: number; turnIds: readonly string[] }) {
  return world.store.endBeat(held, { now: world.clock.now(), delayMs, ran, streamKeep: STREAM_KEEP });
}

/** How long until the agent's next beat is due, as `claimBeats` says it; 0 when it is due now. */
async function dueIn(world: World): Promise<number | undefined> {
  const { nextAt } = await world.store.readBeat("main");
  return nextAt === undefined ? undefined : nextAt - world.clock.now();
}

function isToldOfBeat(world: World): boolean {
  return world.told.some(({ kind }) => kind === "beat");
}

export function beatsTests(engine: Engine): void {
  const it = testsOn(engine);
  describe("beats", () => {
    it("is due when the time is over that it was planned for, and not before", async ({ world }) => {
      await plan(world, 1_000);
      const nextAt = world.clock.now() + 1_000;
      expect(await world.store.readBeat("main")).toEqual({ agent: "main", nextAt, running: false });
      expect(world.store.agentCounts("main").nextBeatAt).toBe(nextAt);
      await world.clock.advance(999);
      expect(await claim(world)).toEqual({ beats: [], nextDueInMs: 1 });
      await world.clock.advance(1);
      const { beats, nextDueInMs } = await claim(world);
      expect(beats).toMatchObject([{ agent: "main", node: "node_a" }]);
      expect(nextDueInMs).toBeUndefined();
      expect(await world.store.readBeat("main")).toEqual({ agent: "main", nextAt: undefined, running: true });
      expect(world.store.agentCounts("main").nextBeatAt).toBe(nextAt);
    });

    it("claims those of the agents that are asked for, and says when the next of them is due", async ({ world }) => {
      for (const [agent, delayMs] of [
        ["a", 0],
        ["b", 0],
        ["c", 500],
        ["d", 100],
      ] as const) {
        await plan(world, delayMs, false, agent);
      }
      const { beats, nextDueInMs } = await claim(world, ["a", "c", "unknown"]);
      expect(beats.map(({ agent }) => agent)).toEqual(["a"]);
      expect(nextDueInMs).toBe(500);
      expect((await claim(world, ["a", "b", "c", "d"])).beats.map(({ agent }) => agent)).toEqual(["b"]);
    });

    it("plans a later one instead of a sooner, but not where the soonest is wanted", async ({ world }) => {
      await plan(world, 1_000);
      await plan(world, 5_000, true);
      expect(await dueIn(world)).toBe(1_000);
      await plan(world, undefined, true);
      expect(await dueIn(world)).toBe(1_000);
      await plan(world, 200, true);
      expect(await dueIn(world)).toBe(200);
      await plan(world, 5_000);
      expect(await dueIn(world)).toBe(5_000);
      await plan(world, undefined);
      expect(await dueIn(world)).toBeUndefined();
      expect((await claim(world)).nextDueInMs).toBeUndefined();
      await plan(world, 300, true);
      expect(await dueIn(world)).toBe(300);
    });

    it("takes events up to the newest at its claim", async ({ world }) => {
      await plan(world, 0);
      await queueEvent(world);
      const { ordinal } = await queueEvent(world, { agent: "other" });
      const held = await claimOne(world);
      const later = await queueEvent(world);
      expect(held.through).toBeGreaterThanOrEqual(ordinal);
      expect(held.through).toBeLessThan(later.ordinal);
    });

    it("is due again when its lease ends, and shuts out the one that held it", async ({ world }) => {
      await plan(world, 0);
      const slow = await claimOne(world);
      await world.clock.advance(LEASE_MS - 1);
      expect(await world.store.extendBeat(slow, LEASE_MS)).toBe(true);
      await world.clock.advance(LEASE_MS - 1);
      expect((await claim(world)).beats).toEqual([]);
      await world.clock.advance(1);
      const again = await claimOne(world);
      expect(again.fence).toBeGreaterThan(slow.fence);
      expect(await world.store.extendBeat(slow, LEASE_MS)).toBe(false);
      const before = await news(world);
      expect(await end(world, slow, 1, { events: 1, turnIds: [] })).toBe(false);
      expect(await news(world)).toEqual(before);
      expect(await world.store.readBeat("main")).toMatchObject({ running: true });
      expect(await end(world, again, 7_000)).toEqual({
        agent: "main",
        nextAt: world.clock.now() + 7_000,
        running: false,
      });
    });

    it("is given back by a sweep when its lease has ended, and who watches is told", async ({ world }) => {
      await plan(world, 0);
      const slow = await claimOne(world);
      await world.clock.advance(LEASE_MS - 1);
      await world.sweep();
      expect(await world.store.readBeat("main")).toMatchObject({ running: true });
      await world.clock.advance(1);
      world.told.length = 0;
      await world.sweep();
      await world.hears(({ kind }) => kind === "beat");
      expect(await world.store.readBeat("main")).toMatchObject({ running: false });
      expect(await dueIn(world)).toBe(0);
      expect(await end(world, slow)).toBe(false);
      expect((await claim(world)).beats).toHaveLength(1);
    });

    it("plans the next from its end, and tells of what it did", async ({ world }) => {
      await plan(world, 0);
      const held = await claimOne(world);
      await world.clock.advance(5_000);
      const ran = { events: 2, turnIds: ["turn_1", "turn_2"] };
      const nextAt = world.clock.now() + 60_000;
      expect(await end(world, held, 60_000, ran)).toEqual({ agent: "main", nextAt, running: false });
      expect(await news(world)).toEqual([{ name: "heartbeat.ran", agentName: "main", ...ran, nextAt }]);
      await world.hears(({ kind }) => kind === "gateway");
      expect(world.store.agentCounts("main").nextBeatAt).toBe(nextAt);
      expect(await end(world, held)).toBe(false);
      expect(await world.store.extendBeat(held, LEASE_MS)).toBe(false);
    });

    it("tells of nothing when there was nothing, and plans none when none is wanted", async ({ world }) => {
      await plan(world, 0);
      const endWithout = async (ran: { events: number; turnIds: readonly string[] } | undefined) =>
        world.store.endBeat(await claimOne(world), {
          now: world.clock.now(),
          delayMs: undefined,
          ran,
          streamKeep: STREAM_KEEP,
        });
      expect(await endWithout(undefined)).toEqual({ agent: "main", nextAt: undefined, running: false });
      expect(await news(world)).toEqual([]);
      expect(await dueIn(world)).toBeUndefined();
      await plan(world, 0);
      await endWithout({ events: 1, turnIds: ["turn_1"] });
      expect(await news(world)).toMatchObject([{ name: "heartbeat.ran", nextAt: null }]);
    });

    it("is due at once when an event wants it so, and stays so whatever is planned", async ({ world }) => {
      await plan(world, 60_000);
      await queueEvent(world);
      expect(await dueIn(world)).toBe(60_000);
      expect(isToldOfBeat(world)).toBe(true);
      world.told.length = 0;
      await queueEvent(world, { beatNow: true });
      await world.hears(({ kind }) => kind === "beat");
      expect(await dueIn(world)).toBe(0);
      for (const delayMs of [undefined, 60_000, 0]) {
        for (const soonest of [false, true]) {
          await plan(world, delayMs, soonest);
          expect(await dueIn(world)).toBe(0);
        }
      }
      expect((await claim(world)).beats).toHaveLength(1);
    });

    it("is due at once also for an agent that has none planned", async ({ world }) => {
      await queueEvent(world, { beatNow: true });
      expect((await claim(world)).beats).toHaveLength(1);
    });

    it("comes at once after the one that is held when an event wanted it meanwhile, once", async ({ world }) => {
      await plan(world, 0);
      const first = await claimOne(world);
      const due = world.store.agentCounts("main").nextBeatAt;
      world.told.length = 0;
      await world.clock.advance(100);
      await plan(world, 50);
      await queueEvent(world, { beatNow: true });
      await queueEvent(world, { beatNow: true });
      await world.hears((what) => what.kind === "gateway" && what.entries.at(-1)?.seq === 2);
      // Its end says when the next is due.
      expect(isToldOfBeat(world)).toBe(false);
      expect(world.store.agentCounts("main").nextBeatAt).toBe(due);
      expect((await claim(world)).beats).toEqual([]);
      expect(await end(world, first)).toMatchObject({ nextAt: world.clock.now() });
      expect(await end(world, await claimOne(world))).toMatchObject({ nextAt: world.clock.now() + 60_000 });
    });

    it("is due at once when a dead event is queued again and wants it so", async ({ world }) => {
      const { eventId } = await queueEvent(world);
      await failEvent(world, eventId, 3);
      const requeue = (beatNow: boolean) =>
        world.store.requeueEvent(eventId, { now: world.clock.now(), beatNow, streamKeep: STREAM_KEEP });
      await requeue(false);
      expect(await dueIn(world)).toBeUndefined();
      await failEvent(world, eventId, 3);
      await requeue(true);
      await world.hears(({ kind }) => kind === "beat");
      expect(await dueIn(world)).toBe(0);
    });

    it("tells who watches whenever one is due sooner than before, and not when it is due later", async ({ world }) => {
      const isTold = async (delayMs: number | undefined, soonest = false): Promise<boolean> => {
        world.told.length = 0;
        await plan(world, delayMs, soonest);
        // Told in order: what comes after this would come after a word of the beat.
        await world.start();
        await world.hears(({ kind }) => kind === "entries");
        return isToldOfBeat(world);
      };
      expect(await isTold(1_000)).toBe(true);
      expect(await isTold(500, true)).toBe(true);
      expect(await isTold(800, true)).toBe(false);
      expect(await isTold(2_000)).toBe(false);
      expect(await isTold(undefined)).toBe(false);
    });

    it("neither comes sooner nor is held for less when the wall clock jumps", async ({ world }) => {
      await plan(world, 1_000);
      for (const ms of [3_600_000, -7_200_000]) {
        world.clock.jump(ms);
        expect(await claim(world)).toEqual({ beats: [], nextDueInMs: 1_000 });
      }
      await world.clock.advance(1_000);
      const held = await claimOne(world);
      world.clock.jump(3_600_000);
      await world.sweep();
      expect((await claim(world)).beats).toEqual([]);
      expect(await world.store.extendBeat(held, LEASE_MS)).toBe(true);
    });
  });
}
