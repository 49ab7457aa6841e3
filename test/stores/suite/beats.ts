import { describe, expect } from "vitest";
import type { ClaimedTurn } from "#store/store.ts";
import { claimBeat, failEvent, news, planBeat, queueEvent, STREAM_KEEP, startBeat, waiting } from "../inbound.ts";
import { testsOn } from "../tests-on.ts";
import { deliveryOf, type Engine, LEASE_MS, refusal, type World } from "../world.ts";
import { due, dueIn, isToldOfBeat } from "./due-beats.ts";

const MAIN = "agent:main:main";
const FAILED = { status: "failed" } as const;

export function beatsTests(engine: Engine): void {
  const it = testsOn(engine);
  describe("a beat", () => {
    it("queues a turn with the waiting events, the oldest first, in the agent's main session", async ({ world }) => {
      const first = await queueEvent(world, { text: "one", metadata: '{"a":1}', caller: "ci" });
      const second = await queueEvent(world, { text: "two ü" });
      await queueEvent(world, { agent: "other" });
      await planBeat(world, 0);
      const { turn, message } = await claimBeat(world);
      expect(turn).toMatchObject({ sessionId: MAIN, agent: "main", surface: "heartbeat", caller: "heartbeat" });
      const at = new Date(first.createdAt).toISOString();
      expect(message).toEqual({
        text: `2 system events, the oldest first\n\n1. ${first.eventId}, ${at}, from ci\none\nmetadata: {"a":1}\n\n2. ${second.eventId}, ${at}, from shared\ntwo ü`,
        outside: true,
        context: undefined,
      });
      for (const { eventId } of [first, second])
        expect(await world.store.getEvent(eventId)).toMatchObject({ status: "queued", turnId: turn.turnId });
      expect(await waiting(world)).toEqual([]);
      expect(world.store.agentCounts("main")).toMatchObject({ running: 1, waitingEvents: 0 });
    });

    it("limits the events and bytes of a turn to a batch, but always includes the first event", async ({ world }) => {
      for (const size of [6, 5, 4, 20, 1]) await queueEvent(world, { text: "x".repeat(size) });
      await planBeat(world, 0);
      const sizes: number[] = [];
      for (let step = 0; step < 4; step++) {
        const claimed = await claimBeat(world, { batch: { limit: 2, bytes: 10 } });
        sizes.push(claimed.message.text.split("\n\n").length - 1);
        await world.end(claimed);
      }
      expect(sizes).toEqual([1, 2, 1, 1]);
    });

    it("without events queues no turn, plans the next beat and adds no entry to the stream", async ({ world }) => {
      await planBeat(world, 0);
      const before = world.store.stats();
      const ended = { outcome: "ended", events: 0, turns: 0, returned: 0, ms: 0, dead: [] };
      expect(await startBeat(world)).toEqual(ended);
      expect(await dueIn(world)).toBe(60_000);
      await world.clock.advance(60_000);
      expect(await startBeat(world, { intervalMs: undefined })).toEqual(ended);
      expect(await dueIn(world)).toBeUndefined();
      expect(await news(world)).toEqual([]);
      expect(await world.store.getSession(MAIN)).toBeUndefined();
      expect(world.store.stats()).toEqual(before);
    });

    it("has one unfinished turn at a time, and can continue when that turn ends", async ({ world }) => {
      for (let n = 0; n < 3; n++) await queueEvent(world);
      await planBeat(world, 0);
      const step = { batch: { limit: 2 } };
      const first = await claimBeat(world, step);
      await world.clock.advance(LEASE_MS - 1);
      expect(await startBeat(world, step)).toEqual({ outcome: "not-due" });
      world.told.length = 0;
      await world.end(first);
      await world.hears(({ kind }) => kind === "beat");
      expect(await world.store.dueBeats(["main"])).toEqual({ due: ["main"], nextDueInMs: undefined });
      await world.end(await claimBeat(world, step));
      expect(await startBeat(world, step)).toMatchObject({ outcome: "ended", events: 3, turns: 2, ms: LEASE_MS - 1 });
    });

    it.for<[string, (world: World, claimed: ClaimedTurn) => Promise<unknown>]>([
      ["completes", (world, claimed) => world.end(claimed)],
      ["fails", (world, claimed) => world.end(claimed, FAILED)],
      ["is cancelled", (world, claimed) => world.end(claimed, { status: "cancelled" })],
      ["is deleted with its session while it runs", ({ store, clock }) => store.deleteSession(MAIN, clock.now())],
      [
        "is cancelled while it waits",
        async (world, claimed) => {
          await world.release(claimed);
          await world.store.cancelTurn(claimed.claim.turnId, world.clock.now());
        },
      ],
      [
        "is deleted with its session while it waits",
        async (world, claimed) => {
          await world.release(claimed);
          await world.store.deleteSession(MAIN, world.clock.now());
        },
      ],
      [
        "fails with its agent's turns",
        async (world, claimed) => {
          await world.release(claimed);
          await world.store.failQueuedTurns("main", { name: "agent-removed", detail: "gone" }, world.clock.now());
        },
      ],
      [
        "has lost its last lease",
        async (world) => {
          await world.clock.advance(LEASE_MS);
          await world.sweep({ maxAttempts: 1 });
        },
      ],
    ])("can continue when its turn %s, and watchers are notified", async ([, act], { world }) => {
      await queueEvent(world, { beatNow: true });
      const claimed = await claimBeat(world);
      world.told.length = 0;
      await act(world, claimed);
      await world.hears(({ kind }) => kind === "beat");
      expect(await due(world)).toEqual(["main"]);
      expect(await startBeat(world)).toMatchObject({ outcome: "ended", events: 1, turns: 1 });
    });

    it("keeps its turn while the turn is retried", async ({ world }) => {
      await queueEvent(world, { beatNow: true });
      const claimed = await claimBeat(world);
      await world.release(claimed, 1_000);
      expect(await due(world)).toEqual([]);
      expect(await startBeat(world)).toEqual({ outcome: "not-due" });
    });

    it("plans the next beat from its end, and reports its events and turns in the stream", async ({ world }) => {
      await queueEvent(world);
      await planBeat(world, 0);
      const claimed = await claimBeat(world);
      await world.clock.advance(5_000);
      await world.end(claimed);
      await world.clock.advance(2_000);
      const nextAt = world.clock.now() + 60_000;
      expect(await startBeat(world)).toMatchObject({ outcome: "ended", ms: 7_000, returned: 0 });
      const ran = { name: "heartbeat.ran", agentName: "main", events: 1, turnIds: [claimed.turn.turnId], nextAt };
      expect((await news(world)).at(-1)).toEqual(ran);
      expect(await world.store.readBeat("main")).toEqual({ agent: "main", nextAt, running: false });
      expect(world.store.agentCounts("main").nextBeatAt).toBe(nextAt);
      expect(await startBeat(world)).toEqual({ outcome: "not-due" });
    });

    it("leaves new and returned events to the next beat", async ({ world }) => {
      for (let n = 0; n < 3; n++) await queueEvent(world);
      await planBeat(world, 0);
      const step = { batch: { limit: 2 } };
      const first = await claimBeat(world, step);
      await queueEvent(world, { text: "late" });
      await world.end(first, FAILED);
      const second = await claimBeat(world, step);
      expect(second.message.text).toMatch(/^1 system event\n/);
      await world.end(second);
      expect(await startBeat(world, step)).toMatchObject({ outcome: "ended", events: 3, returned: 2 });
      expect(await waiting(world)).toHaveLength(3);
    });

    it.for([
      ["an interval", 60_000, true, 0, 60_000],
      ["an interval and more than a batch of waiting events", 60_000, false, 3, 0],
      ["an interval, more than a batch of waiting events and returned events", 60_000, true, 3, 60_000],
      ["no interval", undefined, false, 3, undefined],
      ["no interval and returned events", undefined, true, 3, 7_000],
    ] as const)(
      "plans the next beat for an agent with %s",
      async ([, intervalMs, isFailed, count, next], { world }) => {
        await queueEvent(world, { beatNow: true });
        await world.end(await claimBeat(world), isFailed ? FAILED : {});
        await startBeat(world, { intervalMs, waitingEvents: count, batch: { limit: 2 } });
        expect(await dueIn(world)).toBe(next);
      },
    );

    it("is followed immediately by exactly one more beat if an event requested one during it", async ({ world }) => {
      for (let n = 0; n < 3; n++) await queueEvent(world);
      await planBeat(world, 0);
      const step = { batch: { limit: 2 } };
      const first = await claimBeat(world, step);
      const due = world.store.agentCounts("main").nextBeatAt;
      world.told.length = 0;
      await world.clock.advance(100);
      await planBeat(world, 50);
      await queueEvent(world, { beatNow: true });
      await queueEvent(world, { beatNow: true });
      await world.hears((what) => what.kind === "gateway" && what.entries.at(-1)?.seq === 5);
      expect(isToldOfBeat(world)).toBe(false);
      expect(world.store.agentCounts("main").nextBeatAt).toBe(due);
      expect(await startBeat(world, step)).toEqual({ outcome: "not-due" });
      await world.end(first);
      await world.end(await claimBeat(world, step));
      expect(await startBeat(world, step)).toMatchObject({ outcome: "ended", events: 3 });
      expect(await dueIn(world)).toBe(0);
      await world.end(await claimBeat(world, step));
      expect(await startBeat(world, step)).toMatchObject({ outcome: "ended", events: 2 });
      expect(await dueIn(world)).toBe(60_000);
    });

    it("returns the dead events of its last turn", async ({ world }) => {
      const poison = await queueEvent(world, { delivery: deliveryOf("dlv_1") });
      await failEvent(world, poison.eventId, 2);
      await queueEvent(world, { beatNow: true });
      const { turn, claim } = await claimBeat(world);
      await world.end({ claim }, FAILED);
      const step = await startBeat(world);
      const dead = [{ eventId: poison.eventId, status: "dead", attempts: 3, reason: "broken", turnId: turn.turnId }];
      expect(step).toMatchObject({ outcome: "ended", returned: 1, dead });
    });

    it("is refused with the error of its turn, stays due and changes nothing", async ({ world }) => {
      for (let n = 0; n < 2; n++) await world.start({ session: MAIN });
      await world.start({ session: "agent:other:main", agent: "main" });
      for (const agent of ["main", "other"]) await queueEvent(world, { agent, beatNow: true });
      const before = await world.everything([MAIN]);
      const refused = async (options: Parameters<typeof startBeat>[1]) => {
        const name = await refusal(startBeat(world, options));
        expect(await due(world, ["main", "other"])).toEqual(["main", "other"]);
        expect(await world.store.readBeat("main")).toMatchObject({ running: false });
        return name;
      };
      expect(await refused({ limits: { turnsPerSession: 2 } })).toBe("session-busy");
      expect(await refused({ limits: { messagesPerSession: 2 } })).toBe("session-full");
      expect(await refused({ limits: { turns: 1 } })).toBe("gateway-busy");
      expect(await refused({ limits: { storeBytes: 1 } })).toBe("store-full");
      expect(await refused({ agent: "other" })).toBe("session-conflict");
      expect(await world.everything([MAIN])).toEqual(before);
      expect(await startBeat(world)).toMatchObject({ outcome: "started" });
    });

    it("carries the largest number of hops of its events, limited below the maximum", async ({ world }) => {
      const beat = async (...metadata: string[]) => {
        for (const one of metadata) await queueEvent(world, { metadata: one, beatNow: true });
        const claimed = await claimBeat(world);
        await world.end(claimed);
        await startBeat(world);
        return claimed.hops;
      };
      expect(await beat("{}")).toBe(0);
      expect(await beat('{"x-gateway-hops":1}', "{}")).toBe(1);
      expect(await beat('{"x-gateway-hops":99}')).toBe(2);
      expect(world.store.stats().announcements).toBe(0);
    });
  });

  describe("the beat of a removed agent", () => {
    const drop = (world: World) => world.store.removeBeat("main", { now: world.clock.now(), streamKeep: STREAM_KEEP });

    it("is not planned, even if an event requested one", async ({ world }) => {
      await planBeat(world, 1_000);
      await drop(world);
      expect(await world.store.readBeat("main")).toEqual({ agent: "main", nextAt: undefined, running: false });
      await queueEvent(world, { beatNow: true });
      await drop(world);
      expect(await world.store.dueBeats(["main"])).toEqual({ due: [], nextDueInMs: undefined });
      expect(world.store.agentCounts("main").nextBeatAt).toBeUndefined();
    });

    it("ends with its turn, or immediately if no turn is unfinished", async ({ world }) => {
      for (const isBetween of [false, true]) {
        for (let n = 0; n < 2; n++) await queueEvent(world, { beatNow: true });
        const claimed = await claimBeat(world, { batch: { limit: 1 } });
        if (!isBetween) await drop(world);
        expect(await world.store.readBeat("main")).toMatchObject({ running: true });
        await world.end(claimed);
        if (isBetween) await drop(world);
        expect(await world.store.readBeat("main")).toEqual({ agent: "main", nextAt: undefined, running: false });
        expect(world.store.agentCounts("main").nextBeatAt).toBeUndefined();
        const ran = { name: "heartbeat.ran", events: 1, turnIds: [claimed.turn.turnId], nextAt: null };
        expect((await news(world)).at(-1)).toMatchObject(ran);
        await world.store.failQueuedEvents("main", "gone", { now: 1, streamKeep: STREAM_KEEP, limit: 9 });
      }
    });

    it("continues if the agent is added again before its turn has ended", async ({ world }) => {
      for (const delayMs of [undefined, 60_000]) {
        for (let n = 0; n < 2; n++) await queueEvent(world, { beatNow: true });
        const claimed = await claimBeat(world, { batch: { limit: 1 } });
        await drop(world);
        await planBeat(world, delayMs, delayMs !== undefined);
        await world.end(claimed);
        expect(await due(world)).toEqual(["main"]);
        await world.end(await claimBeat(world));
        expect(await startBeat(world)).toMatchObject({ outcome: "ended", events: 2, turns: 2 });
      }
    });
  });
}
