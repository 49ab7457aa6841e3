import { describe, expect } from "vitest";
import type { ClaimedTurn, GatewayNews } from "#store/store.ts";
import { failEvent, news, queueEvent, takeEvents, toldNews, waiting } from "../inbound.ts";
import { testsOn } from "../tests-on.ts";
import { type Engine, LEASE_MS, LOST, refusal, type World } from "../world.ts";

const ofEvent = async (world: World, eventId: string): Promise<GatewayNews[]> =>
  (await news(world)).filter((one) => "eventId" in one && one.eventId === eventId);

export const handlingEventsTests = (engine: Engine): void => {
  const it = testsOn(engine);
  describe("handling events", () => {
    it("binds events to the turn that takes them, so that no other turn can", async ({ world }) => {
      const { eventId } = await queueEvent(world);
      const { turnId } = (await takeEvents(world, [eventId])).claim;
      const taken = { status: "queued", attempts: 0, turnId, endedAt: undefined };
      expect(await world.store.getEvent(eventId)).toMatchObject(taken);
      expect(await refusal(takeEvents(world, [eventId]))).toBe("internal");
      expect(await waiting(world)).toEqual([]);
    });

    it.for<[string, (world: World, eventId: string) => Promise<string[]>]>([
      ["is not there", async () => ["evt_unknown"]],
      ["comes twice", async (_, eventId) => [eventId, eventId]],
      ["is another agent's", async (world: World) => [(await queueEvent(world, { agent: "other" })).eventId]],
      [
        "ended",
        async (world: World) => {
          const { eventId } = await queueEvent(world);
          await world.end(await takeEvents(world, [eventId]));
          return [eventId];
        },
      ],
    ])("starts no turn, and takes nothing, when one of its events %s", async ([, idsOf], { world }) => {
      const { eventId } = await queueEvent(world);
      const ids = [eventId, ...(await idsOf(world, eventId))];
      const before = world.store.stats();
      expect(await refusal(takeEvents(world, ids, { session: "beat:1" }))).toBe("internal");
      expect({ ...world.store.stats(), bytes: 0 }).toEqual({ ...before, bytes: 0 });
      expect(await world.store.getSession("beat:1")).toBeUndefined();
      expect(await waiting(world)).toEqual([eventId]);
    });

    it("takes each event for one of several turns that want it at once", async ({ world }) => {
      const { eventId } = await queueEvent(world);
      const calls = Array.from({ length: 10 }, () => refusal(takeEvents(world, [eventId])));
      expect((await Promise.all(calls)).filter((outcome) => outcome === "not refused")).toHaveLength(1);
      expect(world.store.stats().turnsRunning).toBe(1);
    });

    it("has handled them when the turn completes, in the same transaction", async ({ world }) => {
      const ids = [(await queueEvent(world)).eventId, (await queueEvent(world)).eventId];
      const claimed = await takeEvents(world, ids);
      await world.clock.advance(1_000);
      world.told.length = 0;
      await world.end(claimed);
      const { turnId } = claimed.claim;
      const endedAt = world.clock.now();
      for (const eventId of ids) {
        const event = await world.store.getEvent(eventId);
        expect(event).toMatchObject({ status: "handled", attempts: 0, turnId, endedAt, reason: undefined });
        expect((await ofEvent(world, eventId)).at(-1)).toEqual({
          name: "event.handled",
          eventId,
          agentName: "main",
          turnId,
        });
      }
      await world.hears(({ kind }) => kind === "gateway");
      expect(toldNews(world).map(({ seq, name }) => [seq, name])).toEqual([
        [3, "event.handled"],
        [4, "event.handled"],
      ]);
      expect(world.store.stats().eventsQueued).toBe(0);
    });

    it.for([
      ["failed", { status: "failed", error: { name: "turn-timeout", detail: "too slow ü" } }, "too slow ü"],
      [
        "failed without a word",
        { status: "failed", error: { name: "turn-timeout", detail: undefined } },
        "turn-timeout",
      ],
      ["was cancelled", { status: "cancelled" }, "The turn was cancelled."],
    ] as const)(
      "goes back with an attempt more, to its old place, when its turn %s",
      async ([, how, reason], { world }) => {
        const event = await queueEvent(world, { metadata: "{}" });
        const behind = await queueEvent(world);
        const claimed = await takeEvents(world, [event.eventId]);
        await world.end(claimed, how);
        const { turnId } = claimed.claim;
        expect(await world.store.getEvent(event.eventId)).toEqual({ ...event, attempts: 1, turnId, reason });
        expect(await waiting(world)).toEqual([event.eventId, behind.eventId]);
        expect(await ofEvent(world, event.eventId)).toHaveLength(1);
      },
    );

    it("is dead after as many failed turns as it may have, and the stream says why", async ({ world }) => {
      const { eventId } = await queueEvent(world);
      await failEvent(world, eventId, 2);
      expect(await world.store.getEvent(eventId)).toMatchObject({ status: "queued", attempts: 2 });
      const claimed = await takeEvents(world, [eventId]);
      await world.end(claimed, { status: "failed", error: { name: "turn-failed", detail: "it broke" } });
      const { turnId } = claimed.claim;
      const dead = { status: "dead", attempts: 3, reason: "it broke", turnId, endedAt: world.clock.now() };
      expect(await world.store.getEvent(eventId)).toMatchObject(dead);
      expect((await ofEvent(world, eventId)).slice(1)).toEqual([
        { name: "event.dead", eventId, agentName: "main", attempts: 3, reason: "it broke" },
      ]);
      expect(await waiting(world)).toEqual([]);
      expect(await refusal(takeEvents(world, [eventId]))).toBe("internal");
    });

    it("stays with its turn while that waits to be tried again", async ({ world }) => {
      const { eventId } = await queueEvent(world);
      const claimed = await takeEvents(world, [eventId]);
      await world.release(claimed, 1_000);
      expect(await waiting(world)).toEqual([]);
      await world.clock.advance(1_000);
      await world.end(await world.claimNext());
      expect(await world.store.getEvent(eventId)).toMatchObject({ status: "handled", attempts: 0 });
    });

    it("goes back once, whoever ends the turn late", async ({ world }) => {
      const { eventId } = await queueEvent(world);
      const slow = await takeEvents(world, [eventId]);
      await world.clock.advance(LEASE_MS);
      await world.sweep({ maxAttempts: 1 });
      expect(await world.store.getEvent(eventId)).toMatchObject({ attempts: 1, reason: LOST.detail });
      expect(await world.end(slow)).toBe(false);
      expect(await world.store.getEvent(eventId)).toMatchObject({ status: "queued", attempts: 1 });
      expect(await waiting(world)).toEqual([eventId]);
    });

    it.for<[string, (world: World, claimed: ClaimedTurn) => Promise<unknown>]>([
      ["its session is deleted while it runs", ({ store, clock }) => store.deleteSession("beat:1", clock.now())],
      [
        "its session is deleted while it waits",
        async (world, claimed) => {
          await world.release(claimed);
          await world.store.deleteSession("beat:1", world.clock.now());
        },
      ],
      [
        "it is cancelled while it waits",
        async (world, claimed) => {
          await world.release(claimed);
          await world.store.cancelTurn(claimed.claim.turnId, world.clock.now());
        },
      ],
      [
        "its agent's turns are failed",
        async (world, claimed) => {
          await world.release(claimed);
          await world.store.failQueuedTurns("main", { name: "agent-removed", detail: "gone" }, world.clock.now());
        },
      ],
    ])("is given back by a turn when %s", async ([, act], { world }) => {
      const { eventId } = await queueEvent(world);
      const claimed = await takeEvents(world, [eventId], { session: "beat:1" });
      await act(world, claimed);
      const event = await world.store.getEvent(eventId);
      expect(event).toMatchObject({ status: "queued", attempts: 1, turnId: claimed.claim.turnId });
      expect(event?.reason).toEqual(expect.stringMatching(/./));
      expect(await waiting(world)).toEqual([eventId]);
      expect(await world.end(claimed)).toBe(false);
      expect(await world.store.getEvent(eventId)).toEqual(event);
    });

    it("dies with its turn's session where it may not be tried again, and who watches is told", async ({ world }) => {
      const { eventId } = await queueEvent(world);
      await takeEvents(world, [eventId], { session: "beat:1", maxAttempts: 1 });
      world.told.length = 0;
      await world.store.deleteSession("beat:1", world.clock.now());
      await world.hears(({ kind }) => kind === "gateway");
      expect(toldNews(world)).toMatchObject([{ seq: 2, name: "event.dead", eventId, attempts: 1 }]);
      expect(await world.store.getEvent(eventId)).toMatchObject({ status: "dead" });
    });
  });
};
