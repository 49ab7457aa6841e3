import { describe, expect } from "vitest";
import { claimCompaction, endCompaction } from "../compactions.ts";
import { talk } from "../journals.ts";
import { testsOn } from "../tests-on.ts";
import { type Engine, LEASE_MS, used, usedMore } from "../world.ts";

export function deletingTests(engine: Engine): void {
  const it = testsOn(engine);
  describe("deleting a session", () => {
    it("erases its record, turns, entries and messages, and returns the number of turns that it ended", async ({
      world,
    }) => {
      const ended = await world.start();
      await world.end(await world.claimNext());
      const queued = await world.start();
      const other = await world.start({ session: "chat:b" });
      const before = await world.everything(["chat:b"], [other.turnId]);
      expect(await world.store.deleteSession("chat:a", world.clock.now())).toEqual({ turnsCancelled: 1 });
      const nothing = { sessions: [undefined], entries: [[]], turns: [undefined, undefined] };
      expect(await world.everything(["chat:a"], [ended.turnId, queued.turnId])).toMatchObject(nothing);
      expect(await world.store.readMessages("chat:a", { limit: 10 })).toEqual([]);
      expect((await world.store.listSessions({ limit: 10 })).items).toHaveLength(1);
      expect((await world.store.listSessions({ agents: ["main"], limit: 10 })).items).toHaveLength(1);
      const after = await world.everything(["chat:b"], [other.turnId]);
      expect({ ...after, stats: undefined }).toEqual({ ...before, stats: undefined });
      expect(world.store.stats()).toMatchObject({ sessions: 1, turnsQueued: 1, turnsRunning: 0 });
    });

    it("returns undefined the second time", async ({ world }) => {
      await world.start();
      await world.store.deleteSession("chat:a", world.clock.now());
      expect(await world.store.deleteSession("chat:a", world.clock.now())).toBeUndefined();
      expect(await world.store.deleteSession("chat:unknown", world.clock.now())).toBeUndefined();
    });

    it("leaves a session of an agent that is not among the given ones", async ({ world }) => {
      await world.start();
      expect(await world.store.deleteSession("chat:a", world.clock.now(), ["other"])).toBeUndefined();
      expect(await world.store.deleteSession("chat:a", world.clock.now(), [])).toBeUndefined();
      expect(await world.store.getSession("chat:a")).toMatchObject({ agent: "main", turnsQueued: 1 });
      const deleted = await world.store.deleteSession("chat:a", world.clock.now(), ["other", "main"]);
      expect(deleted).toEqual({ turnsCancelled: 1 });
    });

    it("notifies watchers of the end of each queued turn and of the running one, and then of the deletion", async ({
      world,
    }) => {
      const running = await world.start();
      await world.claimNext();
      const queued = [await world.start(), await world.start()];
      world.told.length = 0;
      const at = world.clock.now();
      const lastSeq = (await world.store.getSession("chat:a"))?.lastSeq ?? 0;
      expect(await world.store.deleteSession("chat:a", at)).toEqual({ turnsCancelled: 3 });
      await world.hears(({ kind }) => kind === "deleted");
      const ends = world.told.flatMap((what) => (what.kind === "entries" ? what.entries : []));
      expect(ends.map(({ name, turnId }) => [name, turnId]).sort()).toEqual(
        queued.map(({ turnId }) => ["turn.cancelled", turnId]),
      );
      expect(world.told).toContainEqual({ kind: "cancel", turnId: running.turnId });
      const seq = lastSeq + queued.length + 1;
      expect(world.told.at(-1)).toEqual({ kind: "deleted", sessionId: "chat:a", seq, at });
    });

    it("stores nothing that the running turn sends afterwards", async ({ world }) => {
      await world.start();
      const claimed = await world.claimNext();
      await world.store.deleteSession("chat:a", world.clock.now());
      expect(await world.store.extendClaims([claimed.claim], 1_000)).toEqual([claimed.claim]);
      expect(await world.release(claimed)).toBe(false);
      expect(await world.end(claimed, { reply: "late" })).toBe(false);
      expect(await world.store.getSession("chat:a")).toBeUndefined();
      expect((await world.claim()).turns).toEqual([]);
    });

    it("allows a new session with the same id, for any agent", async ({ world }) => {
      await world.start();
      const late = await world.claimNext();
      await world.store.deleteSession("chat:a", world.clock.now());
      const turn = await world.start({ agent: "other" });
      expect(turn.seq).toBe(2);
      expect(await world.store.getSession("chat:a")).toMatchObject({ agent: "other", lastSeq: 2, messageCount: 1 });
      expect(await world.end(late)).toBe(false);
      expect((await world.claimNext()).turn.turnId).toBe(turn.turnId);
    });

    it("does not affect a later session with the same id, whatever still arrives for the deleted one", async ({
      world,
    }) => {
      const { store, clock } = world;
      await world.start();
      await world.end(await world.claimNext());
      const announced = await world.start({ session: "chat:b", announce: { channel: "ops", hops: 0 } });
      await world.end(await world.claimNext());
      const [announcement] = (
        await store.claimOutgoing({ node: "node_a", leaseMs: 1e6, free: {}, others: { free: 9, before: 1e15 } })
      ).claimed;
      await world.start();
      const running = await world.claimNext();
      await world.start({ session: "chat:c" });
      const backing = await world.claimNext();
      await world.release(backing, 1_000);
      await talk(world, ["said"], { session: "chat:g" });
      const compaction = await claimCompaction(world, { session: "chat:g", leaseMs: 1e6 });
      await world.start();
      const gone = ["chat:a", "chat:b", "chat:c", "chat:g"];
      for (const session of gone) await store.deleteSession(session, clock.now());
      const later = ["chat:d", "chat:e", "chat:f", "chat:a"];
      const turns: string[] = [];
      for (const session of later) turns.push((await world.start({ session, agent: "other" })).turnId);
      const before = await world.everything(later, turns);
      expect(await world.end(running, { reply: "late", usage: used(4, 2) })).toBe(false);
      expect(await world.release(running)).toBe(false);
      expect(await world.end(backing, { status: "failed" })).toBe(false);
      expect(await endCompaction(world, compaction)).toBe(false);
      expect(announcement?.message.id).toBe(announced.turnId);
      const step = { at: clock.now(), name: "announcement.sent", detail: undefined };
      if (announcement)
        await store.endOutgoing(announcement.claim, {
          state: "delivered",
          reason: undefined,
          step,
        });
      await clock.advance(LEASE_MS * 2);
      await world.sweep();
      expect(await world.everything(later, turns)).toEqual(before);
      const { turns: claimed } = await world.claim();
      expect(claimed.map(({ turn }) => turn.turnId).sort()).toEqual([...turns].sort());
    });

    it("does not change the usage of its turns", async ({ world }) => {
      await world.start();
      await world.end(await world.claimNext(), { usage: used(4, 2) });
      const before = await world.store.readUsage({ from: 0, to: Infinity });
      await world.store.deleteSession("chat:a", world.clock.now());
      expect(before).toHaveLength(1);
      expect(await world.store.readUsage({ from: 0, to: Infinity })).toEqual(before);
    });

    it("counts the usage of its running turn until the deletion, once, and the turn as cancelled", async ({
      world,
    }) => {
      await world.start();
      const claimed = await world.claimNext();
      await world.store.deleteSession("chat:a", world.clock.now());
      const read = async () => (await world.store.readUsage({ from: 0, to: Infinity }))[0];
      expect(await read()).toMatchObject({ cancelled: 1, attempts: 0, input: 0 });
      expect(await world.end(claimed, { status: "cancelled", usage: usedMore(3, 1, 9) })).toBe(false);
      expect(await world.end(claimed, { status: "cancelled", usage: usedMore(3, 1, 9) })).toBe(false);
      expect(await world.release(claimed, 0, usedMore(3, 1, 9))).toBe(false);
      expect(await read()).toMatchObject({
        cancelled: 1,
        completed: 0,
        failed: 0,
        attempts: 1,
        cached: 3,
        reasoning: 1,
        cost: 9,
      });
    });
  });
}
