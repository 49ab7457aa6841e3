import { describe, expect } from "vitest";
import { failEvent, planBeat, queueEvent, STREAM_KEEP, startBeat } from "../inbound.ts";
import { testsOn } from "../tests-on.ts";
import type { Engine, World } from "../world.ts";

/** The time until the agent's next beat is due, as `dueBeats` returns it; 0 if it is due now. */
export async function dueIn(world: World): Promise<number | undefined> {
  const { nextAt } = await world.store.readBeat("main");
  return nextAt === undefined ? undefined : nextAt - world.clock.now();
}

export async function due(world: World, agents: readonly string[] = ["main"]): Promise<string[]> {
  return (await world.store.dueBeats(agents)).due;
}

export function isToldOfBeat(world: World): boolean {
  return world.told.some(({ kind }) => kind === "beat");
}

export function dueBeatsTests(engine: Engine): void {
  const it = testsOn(engine);
  describe("when a beat is due", () => {
    it("is at its planned time, and not earlier", async ({ world }) => {
      await queueEvent(world);
      await planBeat(world, 1_000);
      const nextAt = world.clock.now() + 1_000;
      expect(await world.store.readBeat("main")).toEqual({ agent: "main", nextAt, running: false });
      expect(world.store.agentCounts("main").nextBeatAt).toBe(nextAt);
      await world.clock.advance(999);
      expect(await world.store.dueBeats(["main"])).toEqual({ due: [], nextDueInMs: 1 });
      expect(await startBeat(world)).toEqual({ outcome: "not-due" });
      await world.clock.advance(1);
      expect(await world.store.dueBeats(["main"])).toEqual({ due: ["main"], nextDueInMs: undefined });
      expect(await startBeat(world)).toMatchObject({ outcome: "started" });
      expect(await world.store.dueBeats(["main"])).toEqual({ due: [], nextDueInMs: undefined });
      expect(await world.store.readBeat("main")).toEqual({ agent: "main", nextAt: undefined, running: true });
      expect(world.store.agentCounts("main").nextBeatAt).toBe(nextAt);
    });

    it("is not due again if it was requested and its event has failed", async ({ world }) => {
      await queueEvent(world, { beatNow: true });
      await world.store.failQueuedEvents("main", "gone", { now: 1, streamKeep: STREAM_KEEP, limit: 9 });
      expect(await due(world)).toEqual(["main"]);
      expect(await startBeat(world)).toMatchObject({ outcome: "ended", events: 0 });
      expect(await dueIn(world)).toBe(60_000);
    });

    it("is returned for the requested agents, with the time until the next beat", async ({ world }) => {
      for (const [agent, delayMs] of [
        ["a", 0],
        ["b", 0],
        ["c", 500],
        ["d", 100],
      ] as const) {
        await planBeat(world, delayMs, false, agent);
      }
      expect(await world.store.dueBeats(["a", "c", "unknown"])).toEqual({ due: ["a"], nextDueInMs: 500 });
      expect(await due(world, ["a", "b", "c", "d"])).toEqual(["a", "b"]);
    });

    it("is moved to a later time, unless the caller requests the sooner one", async ({ world }) => {
      await planBeat(world, 1_000);
      await planBeat(world, 5_000, true);
      expect(await dueIn(world)).toBe(1_000);
      await planBeat(world, undefined, true);
      expect(await dueIn(world)).toBe(1_000);
      await planBeat(world, 200, true);
      expect(await dueIn(world)).toBe(200);
      await planBeat(world, 5_000);
      expect(await dueIn(world)).toBe(5_000);
      await planBeat(world, undefined);
      expect(await dueIn(world)).toBeUndefined();
      expect((await world.store.dueBeats(["main"])).nextDueInMs).toBeUndefined();
      await planBeat(world, 300, true);
      expect(await dueIn(world)).toBe(300);
    });

    it("is immediately when an event requests a beat, regardless of later plans", async ({ world }) => {
      await planBeat(world, 60_000);
      await queueEvent(world);
      expect(await dueIn(world)).toBe(60_000);
      expect(isToldOfBeat(world)).toBe(true);
      world.told.length = 0;
      await queueEvent(world, { beatNow: true });
      await world.hears(({ kind }) => kind === "beat");
      expect(await dueIn(world)).toBe(0);
      for (const delayMs of [undefined, 60_000, 0]) {
        for (const soonest of [false, true]) {
          await planBeat(world, delayMs, soonest);
          expect(await dueIn(world)).toBe(0);
        }
      }
      expect(await due(world)).toEqual(["main"]);
    });

    it("is immediately when an event requests a beat for an agent without a planned beat", async ({ world }) => {
      await queueEvent(world, { beatNow: true });
      expect(await due(world)).toEqual(["main"]);
    });

    it("is immediately when a dead event that requests a beat is queued again", async ({ world }) => {
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

    it("notifies the watchers if the beat is due sooner than before, but not if it is due later", async ({ world }) => {
      const isNotified = async (delayMs: number | undefined, soonest = false): Promise<boolean> => {
        world.told.length = 0;
        await planBeat(world, delayMs, soonest);
        // Notifications are in order, so one of the beat would arrive before the entries of this turn.
        await world.start();
        await world.hears(({ kind }) => kind === "entries");
        return isToldOfBeat(world);
      };
      expect(await isNotified(1_000)).toBe(true);
      expect(await isNotified(500, true)).toBe(true);
      expect(await isNotified(800, true)).toBe(false);
      expect(await isNotified(2_000)).toBe(false);
      expect(await isNotified(undefined)).toBe(false);
    });

    it("does not move when the wall clock jumps", async ({ world }) => {
      await queueEvent(world);
      await planBeat(world, 1_000);
      for (const ms of [3_600_000, -7_200_000]) {
        world.clock.jump(ms);
        expect(await world.store.dueBeats(["main"])).toEqual({ due: [], nextDueInMs: 1_000 });
      }
      await world.clock.advance(1_000);
      expect(await due(world)).toEqual(["main"]);
    });
  });
}
