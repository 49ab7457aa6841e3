import { describe, expect } from "vitest";
import { testsOn } from "../tests-on.ts";
import { type Engine, refusal, type Wish, type World } from "../world.ts";

const CASES: { name: string; why: string; prepare?: (world: World) => Promise<unknown>; wish: Wish }[] = [
  {
    name: "session-busy",
    why: "its session's queue is full",
    wish: { limits: { turnsPerSession: 2 } },
  },
  {
    name: "session-full",
    why: "its session holds as many messages as it may",
    wish: { limits: { messagesPerSession: 2 } },
  },
  {
    name: "gateway-busy",
    why: "the queues of all sessions are full",
    wish: { session: "chat:new", limits: { turns: 2 } },
  },
  {
    name: "store-full",
    why: "the store holds as much as it may",
    wish: { session: "chat:new", limits: { storeBytes: 1 } },
  },
  {
    name: "session-conflict",
    why: "its session belongs to another agent",
    wish: { agent: "other" },
  },
  {
    name: "idempotency-mismatch",
    why: "its key was used with another body",
    prepare: (world) => world.start({ session: "chat:b", key: "k", hash: "one" }),
    wish: { session: "chat:new", key: "k", hash: "two" },
  },
];

export const refusingTests = (engine: Engine): void => {
  const it = testsOn(engine);
  describe("refusing a turn", () => {
    for (const { name, why, prepare, wish } of CASES) {
      it(`refuses with ${name} when ${why}, and changes nothing`, async ({ world }) => {
        await world.start();
        await world.start();
        await prepare?.(world);
        const order = world.order(wish);
        const read = () => world.everything(["chat:a", "chat:b", "chat:new"], [order.turnId]);
        const before = await read();
        const told = [...world.told];
        expect(await refusal(world.store.startTurn(order))).toBe(name);
        expect(await read()).toEqual(before);
        expect(world.told).toEqual(told);
      });
    }

    it("keeps no key of a refused turn", async ({ world }) => {
      await world.start();
      const limits = { turnsPerSession: 1 };
      expect(await refusal(world.store.startTurn(world.order({ key: "k", hash: "one", limits })))).toBe("session-busy");
      const other = await world.store.startTurn(world.order({ key: "k", hash: "two" }));
      expect(other.replayed).toBe(false);
    });

    it("says when to come again where the same request may succeed later", async ({ world }) => {
      await world.start();
      for (const limits of [{ turnsPerSession: 1 }, { turns: 1 }, { storeBytes: 1 }]) {
        const call = world.store.startTurn(world.order({ limits }));
        await expect(call).rejects.toMatchObject({ extra: { retryAfterMs: expect.any(Number) } });
      }
    });

    it("counts against a session's queue what waits, not what runs", async ({ world }) => {
      const limits = { turnsPerSession: 1, turns: 1 };
      await world.start({ limits });
      await world.claimNext();
      expect((await world.start({ limits })).status).toBe("queued");
      expect(await refusal(world.store.startTurn(world.order({ limits })))).toBe("session-busy");
    });

    it("takes a turn again when the queue has become shorter", async ({ world }) => {
      const { turnId } = await world.start();
      const limits = { turnsPerSession: 1, turns: 1 };
      expect(await refusal(world.store.startTurn(world.order({ limits })))).toBe("session-busy");
      await world.store.cancelTurn(turnId, world.clock.now());
      expect((await world.start({ limits })).status).toBe("queued");
    });

    it("counts replies as messages of a session", async ({ world }) => {
      await world.start();
      await world.end(await world.claimNext());
      expect(await refusal(world.store.startTurn(world.order({ limits: { messagesPerSession: 2 } })))).toBe(
        "session-full",
      );
      expect((await world.start({ limits: { messagesPerSession: 3 } })).status).toBe("queued");
    });
  });
};
