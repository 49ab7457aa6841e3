import { describe, expect } from "vitest";
import { testsOn } from "../tests-on.ts";
import { deliveryOf, type Engine } from "../world.ts";

export const startingTests = (engine: Engine): void => {
  const it = testsOn(engine);
  describe("starting a turn", () => {
    it("keeps the turn, its session, its message, its entries and its delivery", async ({ world }) => {
      const { store, clock } = world;
      const order = world.order({
        surface: "rpc",
        caller: "ops",
        text: "good morning ☀️ \u0000",
        model: "fast",
        skillIds: ["sum"],
        delivery: deliveryOf("dlv_1"),
      });
      const { turn, replayed, claimed } = await store.startTurn(order);
      expect({ replayed, claimed }).toEqual({ replayed: false, claimed: undefined });
      expect(turn).toEqual({
        turnId: order.turnId,
        sessionId: "chat:a",
        agent: "main",
        surface: "rpc",
        caller: "ops",
        status: "queued",
        attempt: 0,
        createdAt: clock.now(),
        startedAt: undefined,
        endedAt: undefined,
        model: "fast",
        skillIds: ["sum"],
        messageId: order.messageId,
        seq: 2,
        reply: undefined,
        error: undefined,
        usage: undefined,
        deliveryId: "dlv_1",
      });
      expect(await store.getTurn(order.turnId)).toEqual(turn);
      expect(await store.getSession("chat:a")).toEqual({
        sessionId: "chat:a",
        agent: "main",
        channel: "rest",
        userId: "ada",
        createdAt: clock.now(),
        updatedAt: clock.now(),
        lastSeq: 2,
        firstSeq: 1,
        messageCount: 1,
        turnsQueued: 1,
        usage: { input: 0, output: 0 },
        ordinal: expect.any(Number),
        contextBytes: Buffer.byteLength(order.text),
      });
      const { turnId, messageId, text } = order;
      const at = clock.now();
      expect(await world.entries()).toEqual([
        { seq: 1, at, turnId, name: "message.created", messageId, role: "user", text, outside: false },
        { seq: 2, at, turnId, name: "turn.queued" },
      ]);
      expect(await store.readMessages("chat:a", { limit: 10 })).toEqual([
        { messageId, role: "user", text, turnId, seq: 1, createdAt: at, outside: false, compacted: false },
      ]);
      expect(await store.getDelivery("dlv_1")).toMatchObject(deliveryOf("dlv_1"));
    });

    it("goes on with a session that is there, and keeps its first channel and user", async ({ world }) => {
      await world.start();
      await world.clock.advance(5_000);
      const place = { sessionId: "chat:a", agent: "main", channel: "other", userId: "bob" };
      const { turn } = await world.store.startTurn({ ...world.order(), session: place });
      expect(turn.seq).toBe(4);
      const session = await world.store.getSession("chat:a");
      expect(session).toMatchObject({ channel: "rest", userId: "ada", lastSeq: 4, messageCount: 2, turnsQueued: 2 });
      expect((session?.updatedAt ?? 0) - (session?.createdAt ?? 0)).toBe(5_000);
    });

    it("keeps what came beside the text, in its entry, its record and the claim, also when it is given back", async ({
      world,
    }) => {
      const context = JSON.stringify({ ü: "漢", list: [1, null] });
      await world.start({ context, text: "with" });
      await world.start({ text: "without" });
      const [first, , second] = await world.entries();
      expect(first).toMatchObject({ name: "message.created", context });
      expect(second).toMatchObject({ name: "message.created", text: "without" });
      expect(second).not.toMatchObject({ context: expect.anything() });
      expect(await world.store.readMessages("chat:a", { limit: 2 })).toMatchObject([
        { context: undefined },
        { context },
      ]);
      const claimed = await world.claimNext();
      expect(claimed.message).toEqual({ text: "with", outside: false, context });
      await world.release(claimed);
      expect((await world.claimNext()).message).toEqual({ text: "with", outside: false, context });
      expect((await world.store.getSession("chat:a"))?.contextBytes).toBe("with".length + "without".length);
    });

    it("keeps that a message came from outside, in its entry, its record and the claim", async ({ world }) => {
      await world.start({ outside: true, text: "from a stranger" });
      expect((await world.entries())[0]).toMatchObject({ name: "message.created", outside: true });
      expect(await world.store.readMessages("chat:a", { limit: 1 })).toMatchObject([{ outside: true }]);
      expect((await world.claimNext()).message).toEqual({ text: "from a stranger", outside: true });
    });

    it("claims the turn in the same transaction when that is asked for and nothing of its session is before it", async ({
      world,
    }) => {
      const { store, clock } = world;
      const request = { now: clock.now(), node: "node_a", leaseMs: 1_000, replyMessageId: "msg_reply" };
      const { turn, claimed } = await store.startTurn(world.order({ text: "now", claim: request }));
      expect(turn).toMatchObject({ status: "running", attempt: 1, startedAt: clock.now() });
      expect(claimed).toEqual({
        claim: { turnId: turn.turnId, sessionId: "chat:a", node: "node_a", fence: expect.any(Number) },
        turn,
        message: { text: "now", outside: false },
        replyMessageId: "msg_reply",
        replySeq: 4,
        spentMs: 0,
        hops: 0,
      });
      expect(await world.names()).toEqual(["message.created", "turn.queued", "turn.started", "message.created"]);
      expect((await world.claim()).turns).toEqual([]);
      expect(await store.getSession("chat:a")).toMatchObject({ turnsQueued: 0, messageCount: 1 });
    });

    it("does not claim a turn that has another of its session before it, whatever is asked for", async ({ world }) => {
      const request = () => ({ now: world.clock.now(), node: "node_a", leaseMs: 1_000, replyMessageId: "msg_reply" });
      const first = await world.start();
      const second = await world.store.startTurn(world.order({ claim: request() }));
      expect(second).toMatchObject({ claimed: undefined, turn: { status: "queued", attempt: 0 } });
      expect((await world.claimNext()).turn.turnId).toBe(first.turnId);
      const third = await world.store.startTurn(world.order({ claim: request() }));
      expect(third.claimed).toBeUndefined();
    });
  });
};
