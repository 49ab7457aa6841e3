import { describe, expect } from "vitest";
import { expectFields } from "../fields.ts";
import { testsOn } from "../tests-on.ts";
import { DAY, deliveryOf, type Engine, refusal, type World, type WorldOptions } from "../world.ts";

const CASES: { name: string; why: string; prepare?: (world: World) => Promise<unknown>; options: WorldOptions }[] = [
  {
    name: "session-busy",
    why: "its session's queue is full",
    options: { limits: { turnsPerSession: 2 } },
  },
  {
    name: "session-full",
    why: "its session holds as many messages as it may",
    options: { limits: { messagesPerSession: 2 } },
  },
  {
    name: "gateway-busy",
    why: "the queues of all sessions are full",
    options: { session: "chat:new", limits: { turns: 2 } },
  },
  {
    name: "store-full",
    why: "the store holds as much as it may",
    options: { session: "chat:new", limits: { storeBytes: 1 } },
  },
  {
    name: "session-conflict",
    why: "its session belongs to another agent",
    options: { agent: "other" },
  },
  {
    name: "idempotency-mismatch",
    why: "its key was used with another body",
    prepare: (world) => world.start({ session: "chat:b", key: "k", hash: "one" }),
    options: { session: "chat:new", key: "k", hash: "two" },
  },
];

export function startingTests(engine: Engine): void {
  const it = testsOn(engine);
  describe("starting a turn", () => {
    it("stores the turn, its session, its message, its entries and its delivery", async ({ world }) => {
      const { store, clock } = world;
      const order = world.order({
        surface: "rpc",
        caller: "ops",
        text: "good  morning ☀️ \u0000",
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
        preview: "good morning ☀️ \u0000",
        replyPreview: undefined,
        announcement: undefined,
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
        preview: "good morning ☀️ \u0000",
        turnsRunning: 0,
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
      expectFields(await store.getDelivery("dlv_1"), deliveryOf("dlv_1"));
    });

    it("continues an existing session, without a change of its first channel and user", async ({ world }) => {
      await world.start();
      await world.clock.advance(5_000);
      const place = { sessionId: "chat:a", agent: "main", channel: "other", userId: "bob" };
      const { turn } = await world.store.startTurn({ ...world.order(), session: place });
      expect(turn.seq).toBe(4);
      const session = await world.store.getSession("chat:a");
      expect(session).toMatchObject({ channel: "rest", userId: "ada", lastSeq: 4, messageCount: 2, turnsQueued: 2 });
      expect((session?.updatedAt ?? 0) - (session?.createdAt ?? 0)).toBe(5_000);
    });

    it("stores the context of the message in its entry, its record and the claim, also after a release", async ({
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

    it("stores that a message is from outside, in its entry, its record and the claim", async ({ world }) => {
      await world.start({ outside: true, text: "from a stranger" });
      expect((await world.entries())[0]).toMatchObject({ name: "message.created", outside: true });
      expect(await world.store.readMessages("chat:a", { limit: 1 })).toMatchObject([{ outside: true }]);
      expect((await world.claimNext()).message).toEqual({ text: "from a stranger", outside: true });
    });

    it("claims the turn in the same transaction if requested and the session has no earlier turn", async ({
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

    it("does not claim a turn behind another of its session, even if requested", async ({ world }) => {
      const request = () => ({ now: world.clock.now(), node: "node_a", leaseMs: 1_000, replyMessageId: "msg_reply" });
      const first = await world.start();
      const second = await world.store.startTurn(world.order({ claim: request() }));
      expect(second).toMatchObject({ claimed: undefined, turn: { status: "queued", attempt: 0 } });
      expect((await world.claimNext()).turn.turnId).toBe(first.turnId);
      const third = await world.store.startTurn(world.order({ claim: request() }));
      expect(third.claimed).toBeUndefined();
    });
  });

  describe("refusing a turn", () => {
    for (const { name, why, prepare, options } of CASES) {
      it(`refuses with ${name} if ${why}, and changes nothing`, async ({ world }) => {
        await world.start();
        await world.start();
        await prepare?.(world);
        const order = world.order(options);
        const read = () => world.everything(["chat:a", "chat:b", "chat:new"], [order.turnId]);
        const before = await read();
        const told = [...world.told];
        expect(await refusal(world.store.startTurn(order))).toBe(name);
        expect(await read()).toEqual(before);
        expect(world.told).toEqual(told);
      });
    }

    it("does not store the key of a refused turn", async ({ world }) => {
      await world.start();
      const limits = { turnsPerSession: 1 };
      expect(await refusal(world.store.startTurn(world.order({ key: "k", hash: "one", limits })))).toBe("session-busy");
      const other = await world.store.startTurn(world.order({ key: "k", hash: "two" }));
      expect(other.replayed).toBe(false);
    });

    it("returns the time of a retry if the same request may succeed later", async ({ world }) => {
      await world.start();
      for (const limits of [{ turnsPerSession: 1 }, { turns: 1 }, { storeBytes: 1 }]) {
        const call = world.store.startTurn(world.order({ limits }));
        await expect(call).rejects.toMatchObject({ extra: { retryAfterMs: expect.any(Number) } });
      }
    });

    it("counts waiting turns against a session's queue, and no running one", async ({ world }) => {
      const limits = { turnsPerSession: 1, turns: 1 };
      await world.start({ limits });
      await world.claimNext();
      expect((await world.start({ limits })).status).toBe("queued");
      expect(await refusal(world.store.startTurn(world.order({ limits })))).toBe("session-busy");
    });

    it("accepts a turn again when the queue is shorter", async ({ world }) => {
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

  describe("repeating with an idempotency key", () => {
    it("starts nothing and returns the first turn", async ({ world }) => {
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
      "accepts any text as a key: %j",
      async (key, { world }) => {
        const first = await world.start({ key });
        const again = await world.store.startTurn(world.order({ key, session: "chat:b" }));
        expect(again).toMatchObject({ replayed: true, turn: { turnId: first.turnId } });
      },
    );

    it("returns the first turn in its current state, and claims nothing", async ({ world }) => {
      const claim = { now: world.clock.now(), node: "node_a", leaseMs: 1_000, replyMessageId: "msg_other" };
      await world.start({ key: "k" });
      await world.end(await world.claimNext(), { reply: "done" });
      const again = await world.store.startTurn(world.order({ key: "k", claim }));
      expect(again).toMatchObject({ replayed: true, claimed: undefined, turn: { status: "completed", reply: "done" } });
    });

    it("returns the first turn even if the store is full by then", async ({ world }) => {
      const first = await world.start({ key: "k" });
      const limits = { turnsPerSession: 0, turns: 0, storeBytes: 0, messagesPerSession: 0 };
      const again = await world.store.startTurn(world.order({ key: "k", limits }));
      expect(again).toMatchObject({ replayed: true, turn: { turnId: first.turnId } });
    });

    it("starts a new turn when the key has expired, whether it was swept or not", async ({ world }) => {
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

    it("does not delete a key in a sweep whose `keysBefore` is earlier, whatever the time is then", async ({
      world,
    }) => {
      const first = await world.start({ key: "k" });
      const { clock } = world;
      await world.sweep({ now: clock.now() + 2 * DAY, keysBefore: 0 });
      expectFields(await world.store.startTurn(world.order({ key: "k" })), { replayed: true, turn: first });
      await world.sweep({ keysBefore: clock.now() + 2 * DAY });
      expect((await world.store.startTurn(world.order({ key: "k" }))).replayed).toBe(false);
    });

    it("reports that the turn was deleted with its session", async ({ world }) => {
      await world.start({ key: "k" });
      await world.store.deleteSession("chat:a", world.clock.now());
      expect(await refusal(world.store.startTurn(world.order({ key: "k" })))).toBe("turn-not-found");
    });
  });
}
