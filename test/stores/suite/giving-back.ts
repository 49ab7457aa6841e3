import { describe, expect } from "vitest";
import { testsOn } from "../tests-on.ts";
import { type Engine, used } from "../world.ts";

export const givingBackTests = (engine: Engine): void => {
  const it = testsOn(engine);
  describe("giving a turn back", () => {
    it("queues it again, before the others of its session", async ({ world }) => {
      const first = await world.start();
      await world.start();
      expect(await world.release(await world.claimNext())).toBe(true);
      const turn = await world.store.getTurn(first.turnId);
      expect(turn).toMatchObject({ status: "queued", attempt: 1, seq: first.seq, endedAt: undefined });
      expect((await world.entries()).at(-1)).toMatchObject({ name: "turn.queued", turnId: first.turnId });
      expect(await world.store.getSession("chat:a")).toMatchObject({ turnsQueued: 2 });
      const { turns } = await world.claim();
      expect(turns.map(({ turn: { turnId, attempt } }) => [turnId, attempt])).toEqual([[first.turnId, 2]]);
    });

    it("lets nobody claim it, or one behind it, before its delay has passed, and says how long that is", async ({
      world,
    }) => {
      const first = await world.start();
      await world.start();
      await world.release(await world.claimNext(), 500);
      expect(await world.claim()).toEqual({ turns: [], nextDueInMs: 500 });
      await world.clock.advance(499);
      expect(await world.claim()).toEqual({ turns: [], nextDueInMs: 1 });
      await world.clock.advance(1);
      expect((await world.claimNext()).turn).toMatchObject({ turnId: first.turnId, attempt: 2 });
    });

    it("says how long until the earliest of several is due, in whatever order they were given back", async ({
      world,
    }) => {
      for (const session of ["chat:a", "chat:b", "chat:c"]) await world.start({ session });
      const { turns } = await world.claim();
      for (const [n, delayMs] of [700, 300, 500].entries()) await world.release(turns[n] as (typeof turns)[0], delayMs);
      for (const [passes, session, next] of [
        [300, "chat:b", 200],
        [200, "chat:c", 200],
        [200, "chat:a", undefined],
      ] as const) {
        await world.clock.advance(passes);
        const claimed = await world.claim();
        expect(claimed.turns.map(({ turn }) => turn.sessionId)).toEqual([session]);
        expect(claimed.nextDueInMs).toBe(next);
      }
    });

    it("measures the delay by a clock that does not jump", async ({ world }) => {
      await world.start();
      await world.release(await world.claimNext(), 500);
      world.clock.jump(3_600_000);
      expect((await world.claim()).turns).toEqual([]);
      world.clock.jump(-7_200_000);
      await world.clock.advance(500);
      expect((await world.claim()).turns).toHaveLength(1);
    });

    it("adds up what all attempts of a turn used", async ({ world }) => {
      const { turnId } = await world.start();
      await world.release(await world.claimNext(), 0, used(2, 0));
      expect((await world.store.getTurn(turnId))?.usage).toEqual({ input: 2, output: 0 });
      const second = await world.claimNext();
      expect(second.turn.usage).toEqual({ input: 2, output: 0 });
      await world.end(second, { usage: used(2, 5) });
      const usage = { input: 4, output: 5 };
      expect((await world.store.getTurn(turnId))?.usage).toEqual(usage);
      expect((await world.entries()).at(-1)).toMatchObject({ name: "turn.completed", usage });
      expect((await world.store.getSession("chat:a"))?.usage).toEqual(usage);
    });

    it("ends it as cancelled when that was asked for while it ran", async ({ world }) => {
      const { turnId } = await world.start();
      const next = await world.start();
      const claimed = await world.claimNext();
      await world.store.cancelTurn(turnId, world.clock.now());
      await world.release(claimed, 500, used(1, 1));
      const turn = await world.store.getTurn(turnId);
      expect(turn).toMatchObject({ status: "cancelled", usage: { input: 1, output: 1 } });
      expect((await world.claimNext()).turn.turnId).toBe(next.turnId);
    });

    it("cancels one whose delay has not passed, and lets the next of its session go on", async ({ world }) => {
      const { turnId } = await world.start();
      const next = await world.start();
      await world.release(await world.claimNext(), 500);
      await world.store.cancelTurn(turnId, world.clock.now());
      expect((await world.claimNext()).turn.turnId).toBe(next.turnId);
      await world.clock.advance(500);
      expect((await world.claim()).turns).toEqual([]);
    });
  });
};
