import { describe, expect, it } from "vitest";
import type { ApiKey } from "#store/store.ts";
import { deliveryOf, type Engine, openWorld, used } from "../world.ts";

/** For durable engines alone. */
export const reopeningTests = (engine: Engine): void => {
  describe("opening again", () => {
    it("keeps all that was acknowledged", async () => {
      await using world = await openWorld(engine);
      expect(world.store.durable).toBe(true);
      const ended = await world.start({ key: "k", delivery: deliveryOf("dlv_1") });
      await world.end(await world.claimNext(), { reply: "hi", usage: used(1, 1) });
      const queued = await world.start({ waited: true, skillIds: ["sum"] });
      const key: ApiKey = {
        keyId: "key_1",
        name: "ci",
        prefix: "gw_1",
        hash: "0".repeat(64),
        scopes: ["chat"],
        createdAt: 1,
        lastUsedAt: 2,
      };
      await world.store.createKey(key);
      const read = async () => ({
        ...(await world.everything(["chat:a"], [ended.turnId, queued.turnId])),
        messages: await world.store.readMessages("chat:a", { limit: 10 }),
        delivery: await world.store.getDelivery("dlv_1"),
        usage: await world.store.readUsage({ from: 0, to: Infinity }),
        keys: await world.store.listKeys(),
        page: await world.store.listSessions({ limit: 10 }),
      });
      const before = await read();
      await world.reopen();
      expect(await read()).toEqual(before);
    });

    it("knows its idempotency keys", async () => {
      await using world = await openWorld(engine);
      const first = await world.start({ key: "k" });
      await world.reopen();
      expect(await world.store.startTurn(world.order({ key: "k" }))).toMatchObject({ turn: first, replayed: true });
    });

    it("hands out what was queued, and goes on with the sequence of each session", async () => {
      await using world = await openWorld(engine);
      const { turnId } = await world.start();
      await world.reopen();
      expect((await world.claimNext()).turn.turnId).toBe(turnId);
      expect((await world.start()).seq).toBe(6);
    });
  });
};
