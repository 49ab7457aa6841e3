import { describe, expect } from "vitest";
import { testsOn } from "../tests-on.ts";
import { type Engine, LEASE_MS, LOST, times, type World } from "../world.ts";

async function sessionsOf(world: World): Promise<string[]> {
  return (await world.store.listSessions({ limit: 100 })).items.map(({ sessionId }) => sessionId).sort();
}

async function endOne(world: World, session: string): Promise<void> {
  await world.start({ session });
  await world.end(await world.claimNext());
}

export function sweepingTests(engine: Engine): void {
  const it = testsOn(engine);
  describe("sweeping", () => {
    it("releases a turn when its lease has expired, and the earlier claim is then not valid", async ({ world }) => {
      const { turnId } = await world.start();
      const slow = await world.claimNext({ node: "node_slow" });
      await world.clock.advance(LEASE_MS - 1);
      await world.sweep();
      expect(await world.store.getTurn(turnId)).toMatchObject({ status: "running", attempt: 1 });
      await world.clock.advance(1);
      await world.sweep();
      expect(await world.store.getTurn(turnId)).toMatchObject({ status: "queued", attempt: 1 });
      expect((await world.entries()).at(-1)).toMatchObject({ name: "turn.queued", turnId });
      expect(await world.end(slow, { reply: "late" })).toBe(false);
      const again = await world.claimNext();
      expect(again.turn).toMatchObject({ turnId, attempt: 2 });
      expect(again.claim.fence).toBeGreaterThan(slow.claim.fence);
      expect(await world.end(slow, { reply: "late" })).toBe(false);
      expect(await world.end(again, { reply: "on time" })).toBe(true);
      expect((await world.store.getTurn(turnId))?.reply).toBe("on time");
    });

    it("queues it again at the head of its session's queue", async ({ world }) => {
      const first = await world.start();
      await world.start();
      await world.claimNext();
      await world.clock.advance(LEASE_MS);
      await world.sweep();
      expect((await world.claim()).turns.map(({ turn }) => turn.turnId)).toEqual([first.turnId]);
    });

    it("queues several again session by session, in the order of their creation", async ({ world }) => {
      const sessions = ["chat:b", "chat:a", "chat:c"];
      for (const session of sessions) await world.start({ session });
      // From then on it is the last one that became ready.
      await world.release(await world.claimNext());
      await world.claim();
      await world.clock.advance(LEASE_MS);
      await world.sweep();
      expect((await world.claim()).turns.map(({ turn }) => turn.sessionId)).toEqual(sessions);
    });

    it("fails a turn whose lease expired in the last allowed attempt", async ({ world }) => {
      const { turnId } = await world.start();
      const next = await world.start();
      for (const attempt of [1, 2]) {
        expect((await world.claimNext()).turn.attempt).toBe(attempt);
        await world.clock.advance(LEASE_MS);
        await world.sweep({ maxAttempts: 2 });
      }
      expect(await world.store.getTurn(turnId)).toMatchObject({ status: "failed", error: LOST });
      expect((await world.claimNext()).turn.turnId).toBe(next.turnId);
    });

    it.for([1, 3])(
      "cancels a turn with an expired lease if a cancellation was requested while it ran, of %i attempts",
      async (maxAttempts, { world }) => {
        const { turnId } = await world.start();
        await world.claimNext();
        await world.store.cancelTurn(turnId, world.clock.now());
        await world.clock.advance(LEASE_MS);
        await world.sweep({ maxAttempts });
        expect(await world.store.getTurn(turnId)).toMatchObject({ status: "cancelled" });
      },
    );

    it("ends no lease early when the wall clock jumps", async ({ world }) => {
      const { turnId } = await world.start();
      await world.claimNext();
      for (const ms of [3_600_000, -7_200_000]) {
        world.clock.jump(ms);
        await world.sweep();
        expect(await world.store.getTurn(turnId)).toMatchObject({ status: "running" });
      }
      await world.clock.advance(LEASE_MS);
      await world.sweep();
      expect(await world.store.getTurn(turnId)).toMatchObject({ status: "queued" });
    });

    it("deletes sessions that were not used since the start of the retention, with a separate retention for webhooks", async ({
      world,
    }) => {
      for (const session of ["chat:old", "webhook:old", "chat:used"]) await endOne(world, session);
      await world.clock.advance(1_000);
      const before = world.clock.now() - 1;
      for (const session of ["chat:new", "webhook:new", "chat:used"]) await endOne(world, session);
      world.told.length = 0;
      await world.sweep({ webhookSessionsBefore: before });
      expect(await sessionsOf(world)).toEqual(["chat:new", "chat:old", "chat:used", "webhook:new"]);
      await world.sweep({ sessionsBefore: before });
      expect(await sessionsOf(world)).toEqual(["chat:new", "chat:used", "webhook:new"]);
      await world.hears((what) => what.kind === "deleted" && what.sessionId === "chat:old");
      expect(world.told).toContainEqual(expect.objectContaining({ kind: "deleted", sessionId: "webhook:old" }));
    });

    it("ends although it has looked at as many idle sessions as one call looks at, and could not delete any", async ({
      world,
    }) => {
      await Promise.all(Array.from({ length: 250 }, (_, n) => world.start({ session: `chat:${n}` })));
      await world.clock.advance(1_000);
      // The first call also looks at the beginnings of their journals.
      expect(await world.sweep({ sessionsBefore: world.clock.now() - 1 })).toBe(1);
    });

    it("counts from the last use, whatever earlier sweeps found", async ({ world }) => {
      const MINUTE = 60_000;
      for (const session of ["chat:a", "chat:b"]) await endOne(world, session);
      const first = world.clock.now();
      await world.clock.advance(10 * MINUTE);
      await endOne(world, "chat:a");
      const second = world.clock.now();
      await world.clock.advance(10 * MINUTE);
      for (const sessionsBefore of [first, first + 5 * MINUTE, second - 1]) {
        await world.sweep({ sessionsBefore });
        expect(await sessionsOf(world)).toEqual(["chat:a"]);
      }
      await world.sweep({ sessionsBefore: second });
      expect(await sessionsOf(world)).toEqual([]);
    });

    it("does not delete a session with an unfinished turn, however old it is", async ({ world }) => {
      for (const session of ["chat:running", "chat:queued", "chat:given-back"]) await world.start({ session });
      const { turns } = await world.claim();
      await world.release(turns[1] as (typeof turns)[0]);
      await world.release(turns[2] as (typeof turns)[0], 60_000);
      const sessionsBefore = world.clock.now() + 1;
      await world.sweep({ sessionsBefore });
      expect(await sessionsOf(world)).toEqual(["chat:given-back", "chat:queued", "chat:running"]);
    });

    it("is not stopped by any number of recent sessions", async ({ world }) => {
      await Promise.all(times(300, (n) => world.start({ session: `chat:${n}` })));
      await world.start({ session: "webhook:old" });
      const { turns } = await world.claim({ free: 400, freeOf: () => 400 });
      await Promise.all(turns.map((claimed) => world.end(claimed)));
      const slices = await world.sweep({ sessionsBefore: 0, webhookSessionsBefore: world.clock.now() });
      expect(slices).toBeLessThan(5);
      expect(await world.store.getSession("webhook:old")).toBeUndefined();
      expect(await world.store.getSession("chat:0")).toBeDefined();
    });

    it("erases any number in slices, and returns when it is finished", async ({ world }) => {
      const count = 1_200;
      await Promise.all(Array.from({ length: count }, (_, n) => world.start({ session: `chat:${n}`, key: `k${n}` })));
      const keptOne = await world.start({ session: "chat:kept" });
      const { turns } = await world.claim({ free: count, freeOf: () => count });
      await Promise.all(turns.map((claimed) => world.end(claimed)));
      const slices = await world.sweep({ sessionsBefore: world.clock.now() });
      expect(slices).toBeGreaterThan(1);
      expect(await sessionsOf(world)).toEqual(["chat:kept"]);
      expect(await world.store.getTurn(keptOne.turnId)).toMatchObject({ status: "queued" });
      expect(await world.sweep({ sessionsBefore: world.clock.now() })).toBe(1);
    });
  });
}
