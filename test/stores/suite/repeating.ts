import { describe, expect } from "vitest";
import { testsOn } from "../tests-on.ts";
import { DAY, deliveryOf, type Engine, refusal } from "../world.ts";

export const repeatingTests = (engine: Engine): void => {
  const it = testsOn(engine);
  describe("repeating with an idempotency key", () => {
    it("starts nothing and answers the first turn", async ({ world }) => {
      const first = await world.start({ key: "k" });
      const before = await world.everything(["chat:a", "chat:b"], [first.turnId]);
      const order = world.order({ key: "k", session: "chat:b", text: "again", delivery: deliveryOf("dlv_2") });
      expect(await world.store.startTurn(order)).toEqual({ turn: first, replayed: true, claimed: undefined });
      const after = await world.everything(["chat:a", "chat:b"], [first.turnId]);
      expect({ ...after, stats: undefined }).toEqual({ ...before, stats: undefined });
      expect(after.stats.turnsQueued).toBe(1);
      expect(await world.store.getTurn(order.turnId)).toBeUndefined();
    });

    it.for(["a\u0000b", "a\ud800b", "\u0001", "k".repeat(1_000)])(
      "takes any text as a key: %j",
      async (key, { world }) => {
        const first = await world.start({ key });
        const again = await world.store.startTurn(world.order({ key, session: "chat:b" }));
        expect(again).toMatchObject({ replayed: true, turn: { turnId: first.turnId } });
      },
    );

    it("answers the first turn as it is by then, and claims nothing", async ({ world }) => {
      const claim = { now: world.clock.now(), node: "node_a", leaseMs: 1_000, replyMessageId: "msg_other" };
      await world.start({ key: "k" });
      await world.end(await world.claimNext(), { reply: "done" });
      const again = await world.store.startTurn(world.order({ key: "k", claim }));
      expect(again).toMatchObject({ replayed: true, claimed: undefined, turn: { status: "completed", reply: "done" } });
    });

    it("answers the first turn even when the store has become full since", async ({ world }) => {
      const first = await world.start({ key: "k" });
      const limits = { turnsPerSession: 0, turns: 0, storeBytes: 0, messagesPerSession: 0 };
      const again = await world.store.startTurn(world.order({ key: "k", limits }));
      expect(again).toMatchObject({ replayed: true, turn: { turnId: first.turnId } });
    });

    it("starts anew when the key has passed its time, swept or not", async ({ world }) => {
      const first = await world.start({ key: "k" });
      await world.clock.advance(DAY - 1);
      expect((await world.store.startTurn(world.order({ key: "k" }))).replayed).toBe(true);
      await world.clock.advance(1);
      const second = await world.store.startTurn(world.order({ key: "k", hash: "other" }));
      expect(second.replayed).toBe(false);
      expect(second.turn.turnId).not.toBe(first.turnId);
      await world.sweep();
      const third = await world.store.startTurn(world.order({ key: "k", hash: "other" }));
      expect(third).toMatchObject({ replayed: true, turn: { turnId: second.turn.turnId } });
    });

    it("keeps a key through a sweep whose `keysBefore` does not reach it, whatever the time is then", async ({
      world,
    }) => {
      const first = await world.start({ key: "k" });
      const { clock } = world;
      await world.sweep({ now: clock.now() + 2 * DAY, keysBefore: 0 });
      expect(await world.store.startTurn(world.order({ key: "k" }))).toMatchObject({ replayed: true, turn: first });
      await world.sweep({ keysBefore: clock.now() + 2 * DAY });
      expect((await world.store.startTurn(world.order({ key: "k" }))).replayed).toBe(false);
    });

    it("says that the turn is gone when it was deleted with its session", async ({ world }) => {
      await world.start({ key: "k" });
      await world.store.deleteSession("chat:a", world.clock.now());
      expect(await refusal(world.store.startTurn(world.order({ key: "k" })))).toBe("turn-not-found");
    });
  });
};
