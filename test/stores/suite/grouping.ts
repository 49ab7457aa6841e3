import { describe, expect } from "vitest";
import type { TurnGroup } from "#store/store.ts";
import { configureBudgets } from "../budgets.ts";
import { startCompaction } from "../compactions.ts";
import { groupOf } from "../groups.ts";
import { recountShares, sharesOf } from "../shares.ts";
import { testsOn } from "../tests-on.ts";
import { deliveryOf, type Engine, refusal, times, used, type World, type WorldOptions } from "../world.ts";

const SECOND = 1_000;
const SESSION = "webhook:pr-1";

type SendOptions = WorldOptions & { group?: TurnGroup; id?: string };

/** Sends a webhook of a group, which has its own delivery. */
async function send(world: World, text: string, { group = groupOf(), id, ...options }: SendOptions = {}) {
  const delivery = { ...deliveryOf(id ?? world.newId("dlv"), text), surface: "hooks" as const };
  const of = { session: SESSION, surface: "hooks" as const, caller: "push", outside: true, text, ...options };
  return await world.store.startTurn(world.order({ ...of, delivery, group }));
}

async function textOf(world: World, turnId: string): Promise<string | undefined> {
  const { turns } = await world.claim();
  return turns.find(({ turn }) => turn.turnId === turnId)?.message.text;
}

async function stepsOf(world: World, deliveryId: string | undefined): Promise<string[]> {
  const { steps = [] } = (await world.store.getDelivery(deliveryId ?? "")) ?? {};
  return steps.map(({ name, detail }) => [name, detail].join(" "));
}

export function groupingTests(engine: Engine): void {
  const it = testsOn(engine);
  describe("merging webhooks in a group", () => {
    it("turns 50 webhooks with 5 keys into 5 turns, each with the last message", async ({ world }) => {
      const started = await Promise.all(
        times(50, (n) => {
          const key = `group:${n % 5}`;
          return send(world, `push ${n}`, { session: `webhook:pr-${n % 5}`, group: groupOf({ key }) });
        }),
      );
      expect(new Set(started.map(({ turn }) => turn.turnId)).size).toBe(5);
      expect(started.filter(({ joinedBy }) => joinedBy === undefined)).toHaveLength(5);
      expect(world.store.stats()).toMatchObject({ turnsQueued: 5, deliveries: 50 });
      expect((await world.claim()).turns).toEqual([]);
      await world.clock.advance(30 * SECOND);
      const { turns } = await world.claim();
      expect(turns.map(({ message }) => message.text).sort()).toEqual(times(5, (n) => `push ${45 + n}`));
      for (const claimed of turns) await world.end(claimed);
      expect(world.store.stats()).toMatchObject({ turnsQueued: 0, turnsRunning: 0 });
      expect(await world.names("webhook:pr-3")).toEqual([
        "message.created",
        "turn.queued",
        "turn.started",
        "message.created",
        "message.completed",
        "turn.completed",
      ]);
    });

    it("gives the turn all messages in order", async ({ world }) => {
      const group = groupOf({ take: "all" });
      const { turn } = await send(world, "one", { group });
      await send(world, "two ü", { group });
      await send(world, "three", { group });
      await world.clock.advance(30 * SECOND);
      expect(await textOf(world, turn.turnId)).toBe("one\n\ntwo ü\n\nthree");
    });

    it("gives the turn the context, the model and the announcement of the last request, and the most hops", async ({
      world,
    }) => {
      const first = { channel: "ops", hops: 3, to: "C1", thread: "1.1" };
      const { turn } = await send(world, "one", { context: '{"n":1}', model: "slow", announce: first });
      const last = { channel: "ops", hops: 1, to: "C2", thread: "2.2" };
      await send(world, "two", { context: '{"n":2}', model: "fast", announce: last });
      expect(await world.store.getTurn(turn.turnId)).toMatchObject({ model: "fast", preview: "two", seq: 0 });
      await world.clock.advance(30 * SECOND);
      const claimed = await world.claimNext();
      expect(claimed).toMatchObject({ hops: 3, message: { text: "two", context: '{"n":2}', outside: true } });
      await world.end(claimed, { usage: used(1, 1, "fast") });
      const ended = await world.store.getTurn(turn.turnId);
      expect(ended?.announcement).toMatchObject({ channel: "ops", to: "C2", thread: "2.2", hops: 3 });
      const counters = await world.store.readUsage({ from: 0, to: Infinity });
      expect(counters).toMatchObject([{ model: "fast", messages: 1, completed: 1 }]);
    });

    it("waits for the window after the last request, and reports the time until then", async ({ world }) => {
      await send(world, "one");
      expect(world.told).toContainEqual({ kind: "turn", dueInMs: 30 * SECOND });
      await world.clock.advance(20 * SECOND);
      await send(world, "two");
      await world.clock.advance(29 * SECOND);
      expect(await world.claim()).toEqual({ turns: [], nextDueInMs: SECOND });
      await world.clock.advance(SECOND);
      expect((await world.claimNext()).message.text).toBe("two");
    });

    it("starts a turn after maxWait in a steady stream, and a new group with the next request", async ({ world }) => {
      const group = groupOf({ windowMs: 2 * SECOND, maxWaitMs: 5 * SECOND });
      const texts: string[] = [];
      for (let n = 1; n <= 30; n++) {
        await send(world, `push ${n}`, { group });
        await world.clock.advance(SECOND);
        for (const claimed of (await world.claim()).turns) {
          texts.push(claimed.message.text);
          await world.end(claimed);
        }
      }
      expect(texts).toEqual(["push 5", "push 10", "push 15", "push 20", "push 25", "push 30"]);
    });

    it("is before a later turn of its session once its time is over, even if no gateway has claimed", async ({
      world,
    }) => {
      await send(world, "old", { group: groupOf({ key: "group:2", windowMs: 20 * SECOND }) });
      await send(world, "older", { group: groupOf({ windowMs: 10 * SECOND }) });
      await send(world, "open", { group: groupOf({ key: "group:3", windowMs: 60 * SECOND }) });
      await world.clock.advance(30 * SECOND);
      await world.start({ session: SESSION, text: "new" });
      const texts: string[] = [];
      for (let n = 0; n < 3; n++) {
        const claimed = await world.claimNext();
        texts.push(claimed.message.text);
        await world.end(claimed);
      }
      expect(texts).toEqual(["older", "old", "new"]);
      expect((await world.claim()).turns).toEqual([]);
    });

    it("keeps the key of an open group from the sweep of a gateway whose clock is ahead", async ({ world }) => {
      const group = groupOf({ windowMs: 2 * SECOND, maxWaitMs: 4 * SECOND });
      const { turn } = await send(world, "one", { group });
      await world.sweep({ keysBefore: world.clock.now() + 60 * SECOND });
      expect(await send(world, "two", { group })).toMatchObject({ turn: { turnId: turn.turnId } });
    });

    it("opens a new group when the time of the old one is over, even if no gateway has claimed", async ({ world }) => {
      const first = await send(world, "one");
      await world.clock.advance(30 * SECOND);
      expect(await world.store.findGroup(groupOf().key, world.clock.now())).toBeUndefined();
      const second = await send(world, "two");
      expect(second.joinedBy).toBeUndefined();
      expect((await world.claimNext()).turn.turnId).toBe(first.turn.turnId);
      await send(world, "three");
      await world.clock.advance(30 * SECOND);
      expect((await world.claim()).turns).toEqual([]);
    });

    it("closes the group at once if the joined text would be too long, and opens another", async ({ world }) => {
      const group = groupOf({ take: "all", longestText: 10 });
      const first = await send(world, "12345", { group });
      const second = await send(world, "678", { group });
      const third = await send(world, "9", { group });
      expect(second.turn.turnId).toBe(first.turn.turnId);
      expect(third.turn.turnId).not.toBe(first.turn.turnId);
      const claimed = await world.claimNext();
      expect(claimed.message.text).toBe("12345\n\n678");
      await world.end(claimed);
      await world.clock.advance(30 * SECOND);
      expect((await world.claimNext()).message.text).toBe("9");
    });

    it("opens a new group for another agent, and both become turns", async ({ world }) => {
      const first = await send(world, "one");
      const second = await send(world, "two", { agent: "other", session: "webhook:other" });
      const third = await send(world, "three", { agent: "other", session: "webhook:other" });
      expect(second.joinedBy).toBeUndefined();
      expect(third.turn.turnId).toBe(second.turn.turnId);
      await world.clock.advance(30 * SECOND);
      const { turns } = await world.claim();
      const texts = new Map(turns.map(({ turn, message }) => [turn.turnId, message.text]));
      expect([texts.get(first.turn.turnId), texts.get(second.turn.turnId)]).toEqual(["one", "three"]);
    });

    it("joins the session of the group", async ({ world }) => {
      await send(world, "one");
      const { turn } = await send(world, "two", { session: "webhook:another" });
      expect(turn.sessionId).toBe(SESSION);
      expect(await world.store.getSession("webhook:another")).toBeUndefined();
    });

    it("finds the open group of a key", async ({ world }) => {
      const now = world.clock.now();
      expect(await world.store.findGroup(groupOf().key, now)).toBeUndefined();
      const { turn } = await send(world, "one", { id: "dlv_first" });
      await world.clock.advance(10 * SECOND);
      await send(world, "two");
      expect(await world.store.findGroup(groupOf().key, world.clock.now())).toEqual({
        turnId: turn.turnId,
        sessionId: SESSION,
        deliveryId: "dlv_first",
        requests: 2,
        openedAt: now,
        closesAt: now + 40 * SECOND,
      });
    });
  });

  describe("the deliveries of a group", () => {
    it("are linked to the turn and to each other, and only the first has the turn's outcome", async ({ world }) => {
      const { turn } = await send(world, "one", { id: "dlv_1" });
      const joined = await send(world, "two", { id: "dlv_2" });
      expect(joined).toMatchObject({ joinedBy: "dlv_2", replayed: false, turn: { turnId: turn.turnId } });
      const { turnId, sessionId } = turn;
      const both = await world.store.readDeliveries(["dlv_1", "dlv_2"]);
      expect(both).toMatchObject([
        { deliveryId: "dlv_1", outcome: "queued", turnId, sessionId, preview: "two" },
        { deliveryId: "dlv_2", outcome: "coalesced", turnId, sessionId, answer: "coalesced", agent: "main" },
      ]);
      expect(await stepsOf(world, "dlv_2")).toEqual([
        `request.coalesced {"turn_id":"${turnId}","delivery_id":"dlv_1","requests":2}`,
      ]);
      await world.clock.advance(30 * SECOND);
      await world.end(await world.claimNext());
      const closesAt = new Date(world.clock.now()).toISOString();
      expect(await stepsOf(world, "dlv_1")).toEqual([
        `group.opened {"closes_at":"${closesAt}"}`,
        `group.joined {"delivery_id":"dlv_2","requests":2,"closes_at":"${closesAt}"}`,
        `group.closed {"requests":2}`,
      ]);
      expect(await world.store.readDeliveries(["dlv_1", "dlv_2"])).toMatchObject([
        { outcome: "completed" },
        { outcome: "coalesced" },
      ]);
    });

    it("are reported to the watchers when they are recorded and when the group changes", async ({ world }) => {
      await send(world, "one", { id: "dlv_1" });
      await world.hears((what) => what.kind === "recorded" && what.deliveryId === "dlv_1");
      await send(world, "two", { id: "dlv_2" });
      await world.hears((what) => what.kind === "recorded" && what.deliveryId === "dlv_2");
      await world.hears((what) => what.kind === "outcome" && what.deliveryId === "dlv_1");
    });

    it("leave room for later steps in the timeline of the first one", async ({ world }) => {
      await send(world, "0", { id: "dlv_first" });
      for (let n = 1; n < 150; n++) await send(world, String(n));
      await world.clock.advance(30 * SECOND);
      await world.claimNext();
      const steps = await stepsOf(world, "dlv_first");
      expect(steps.length).toBeLessThan(110);
      expect(steps.at(-1)).toBe('group.closed {"requests":150}');
    });

    it("can be deleted from the recorder once they have joined", async ({ world }) => {
      const recorder = { entries: 2, bytes: 1e9, refused: 1 };
      await send(world, "one", { id: "dlv_1", recorder });
      for (let n = 2; n < 6; n++) await send(world, "more", { id: `dlv_${n}`, recorder });
      expect(await world.store.getDelivery("dlv_1")).toBeDefined();
      expect(await world.store.getDelivery("dlv_2")).toBeUndefined();
      expect(await world.store.getDelivery("dlv_5")).toBeDefined();
    });
  });

  describe("repeating a request of a group", () => {
    it("is a repeat and never joins the group again", async ({ world }) => {
      const opened = await send(world, "one", { key: "a" });
      const joined = await send(world, "two", { key: "b", id: "dlv_b" });
      const before = await world.store.findGroup(groupOf().key, world.clock.now());
      const [first, second] = [await send(world, "one", { key: "a" }), await send(world, "two", { key: "b" })];
      expect(first).toMatchObject({ replayed: true, turn: { turnId: opened.turn.turnId } });
      expect(first.joinedBy).toBeUndefined();
      expect(second).toMatchObject({ replayed: true, joinedBy: "dlv_b", turn: { turnId: joined.turn.turnId } });
      const found = await world.store.findReplay({ key: "b", hash: "hash" }, world.clock.now());
      expect(found).toMatchObject({ joinedBy: "dlv_b", turn: { turnId: joined.turn.turnId } });
      expect(await world.store.findGroup(groupOf().key, world.clock.now())).toEqual(before);
      await world.clock.advance(30 * SECOND);
      await world.end(await world.claimNext());
      expect(await send(world, "two", { key: "b" })).toMatchObject({ replayed: true, joinedBy: "dlv_b" });
      expect(await refusal(send(world, "three", { key: "b", hash: "other" }))).toBe("idempotency-mismatch");
    });
  });

  describe("a session with an open group", () => {
    it("runs its other turns, and then the group's turn behind them", async ({ world }) => {
      const { turn } = await send(world, "group");
      const running = await world.start({ session: SESSION, text: "one" });
      const claimed = await world.claimNext();
      expect(claimed.turn.turnId).toBe(running.turnId);
      await world.start({ session: SESSION, text: "two" });
      await world.clock.advance(30 * SECOND);
      expect((await world.claim()).turns).toEqual([]);
      await world.start({ session: SESSION, text: "three" });
      const texts: string[] = [];
      for (let next = claimed; ; next = await world.claimNext()) {
        texts.push(next.message.text);
        await world.end(next);
        if (texts.length === 4) break;
      }
      expect(texts).toEqual(["one", "two", "group", "three"]);
      const entries = await world.entries(SESSION);
      const { seq } = (await world.store.getTurn(turn.turnId)) ?? {};
      expect(entries.find((entry) => entry.seq === seq)).toMatchObject({ name: "turn.queued", turnId: turn.turnId });
      expect(entries.map((entry) => entry.seq)).toEqual(times(entries.length, (n) => n + 1));
    });

    it("starts the group's turn at its close if no other turn is before it, and a turn at once meanwhile", async ({
      world,
    }) => {
      await send(world, "group");
      const claim = { now: world.clock.now(), node: "node_a", leaseMs: 1_000, replyMessageId: "msg_other" };
      const { claimed } = await world.store.startTurn(world.order({ session: SESSION, claim }));
      expect(claimed).toBeDefined();
      if (claimed) await world.end(claimed);
      await world.clock.advance(30 * SECOND);
      expect((await world.claimNext()).message.text).toBe("group");
    });

    it("has several groups with different keys, which close in their order", async ({ world }) => {
      await send(world, "slow", { group: groupOf({ key: "group:a", windowMs: 20 * SECOND }) });
      await send(world, "fast", { group: groupOf({ key: "group:b", windowMs: 10 * SECOND }) });
      await world.clock.advance(20 * SECOND);
      const first = await world.claimNext();
      expect(first.message.text).toBe("fast");
      await world.end(first);
      expect((await world.claimNext()).message.text).toBe("slow");
    });

    it("requeues the group's turn to the head of the queue after its claim", async ({ world }) => {
      await send(world, "group");
      await world.clock.advance(30 * SECOND);
      const claimed = await world.claimNext();
      await world.start({ session: SESSION, text: "later" });
      await world.release(claimed, 5 * SECOND);
      expect(await world.claim()).toMatchObject({ turns: [], nextDueInMs: 5 * SECOND });
      await world.clock.advance(5 * SECOND);
      expect((await world.claimNext()).message.text).toBe("group");
    });

    it("is compacted before the group closes", async ({ world }) => {
      await world.start({ session: SESSION });
      await world.end(await world.claimNext());
      await send(world, "group");
      await startCompaction(world, { session: SESSION });
      expect((await world.claimNext()).task).toMatchObject({ kind: "compact" });
      await world.clock.advance(30 * SECOND);
      expect((await world.claim()).turns).toEqual([]);
    });

    it("is not erased by its retention", async ({ world }) => {
      const { turn } = await send(world, "group", { group: groupOf({ windowMs: 3_000 * SECOND, maxWaitMs: 1e9 }) });
      await world.clock.advance(2_000 * SECOND);
      await world.sweep({ webhookSessionsBefore: world.clock.now() - SECOND, sessionsBefore: world.clock.now() });
      expect((await world.store.getTurn(turn.turnId))?.status).toBe("queued");
    });

    it("counts the waiting turn for its limits, and accepts joins when the queues are full", async ({ world }) => {
      const limits = { turnsPerSession: 1, turns: 1 };
      await send(world, "one", { limits });
      expect(await refusal(world.store.startTurn(world.order({ session: SESSION, limits })))).toBe("session-busy");
      expect(await refusal(send(world, "x", { limits, group: groupOf({ key: "group:2" }) }))).toBe("session-busy");
      expect((await send(world, "two", { limits })).joinedBy).toBeDefined();
      expect(await refusal(send(world, "three", { limits: { storeBytes: 1 } }))).toBe("store-full");
      await world.clock.advance(30 * SECOND);
      expect((await world.claimNext()).message.text).toBe("two");
    });
  });

  describe("ending the turn of an open group", () => {
    it("cancels it with its message in the journal, and the next request opens a new group", async ({ world }) => {
      const { turn } = await send(world, "one", { id: "dlv_1" });
      await send(world, "two");
      expect(await world.store.cancelTurn(turn.turnId, world.clock.now())).toMatchObject({ status: "cancelled" });
      expect(await world.names(SESSION)).toEqual(["message.created", "turn.queued", "turn.cancelled"]);
      expect((await world.store.readMessages(SESSION, { limit: 9 })).map(({ text }) => text)).toEqual(["two"]);
      expect(await world.store.getSession(SESSION)).toMatchObject({ turnsQueued: 0, messageCount: 1, preview: "two" });
      const next = await send(world, "three");
      expect(next.turn.turnId).not.toBe(turn.turnId);
      expect(next.joinedBy).toBeUndefined();
      await world.clock.advance(30 * SECOND);
      expect((await world.claimNext()).message.text).toBe("three");
    });

    it("fails with the queued turns of a removed agent", async ({ world }) => {
      const { turn } = await send(world, "one");
      const error = { name: "turn-failed", detail: "removed" } as const;
      expect(await world.store.failQueuedTurns("main", error, world.clock.now())).toBe(1);
      expect(await world.store.getTurn(turn.turnId)).toMatchObject({ status: "failed", seq: 2 });
      expect(world.store.stats().turnsQueued).toBe(0);
      expect((await world.claim()).nextDueInMs).toBeUndefined();
    });

    it("deletes it with its session, also for its repeats", async ({ world }) => {
      const { turn } = await send(world, "one", { key: "a" });
      await send(world, "two", { key: "b", id: "dlv_b" });
      expect(await world.store.deleteSession(SESSION, world.clock.now())).toEqual({ turnsCancelled: 1 });
      await world.sweep();
      expect(await world.store.getTurn(turn.turnId)).toBeUndefined();
      expect(await world.store.getDelivery("dlv_b")).toMatchObject({ outcome: "coalesced", body: undefined });
      expect(await refusal(send(world, "two", { key: "b" }))).toBe("turn-not-found");
      expect(world.store.stats()).toMatchObject({ sessions: 0, turnsQueued: 0 });
      expect(await sharesOf(world.store)).toEqual([]);
      const next = await send(world, "three");
      await world.clock.advance(30 * SECOND);
      expect((await world.claimNext()).turn.turnId).toBe(next.turn.turnId);
    });

    it("erases the bodies of all its deliveries with its session", async ({ world }) => {
      await send(world, "x".repeat(5_000));
      for (let n = 0; n < 3; n++) await send(world, "y".repeat(5_000));
      await world.clock.advance(30 * SECOND);
      await world.end(await world.claimNext());
      expect(world.store.stats().deliveryBytes).toBeGreaterThan(20_000);
      await world.store.deleteSession(SESSION, world.clock.now());
      await world.sweep();
      expect(world.store.stats().deliveryBytes).toBeLessThan(5_000);
    });

    it("stores the bodies of the newest hundred joins, and erases those of long groups in several steps", async ({
      world,
    }) => {
      const recorder = { entries: 10_000, bytes: 1e9, refused: 1_000 };
      for (let n = 0; n < 5; n++) {
        const options = { session: `${SESSION}${n}`, group: groupOf({ key: `group:${n}` }), recorder };
        await Promise.all(times(111, (count) => send(world, `push ${count}`, options)));
      }
      await world.clock.advance(30 * SECOND);
      for (const claimed of (await world.claim()).turns) await world.end(claimed);
      await world.clock.advance(SECOND);
      const bodies = async () => {
        const { items } = await world.store.listDeliveries({ limit: 1_000 });
        const found = await Promise.all(items.map(({ deliveryId }) => world.store.getDelivery(deliveryId)));
        return found.filter((delivery) => delivery?.body !== undefined).length;
      };
      // Those of the first request, and of the last hundred.
      expect(await bodies()).toBe(5 * 101);
      const now = world.clock.now();
      expect(await world.sweep({ sessionsBefore: now, webhookSessionsBefore: now })).toBeGreaterThan(1);
      expect(world.store.stats()).toMatchObject({ sessions: 0, deliveries: 5 * 111 });
      expect(await bodies()).toBe(0);
    });

    it("continues while its agent is paused, and claims the turn after the pause", async ({ world }) => {
      await send(world, "one");
      const pause = { now: world.clock.now(), streamKeep: 100 };
      await world.store.setPaused("main", { paused: true, ...pause });
      await send(world, "two");
      await world.clock.advance(30 * SECOND);
      expect((await world.claim()).turns).toEqual([]);
      expect((await send(world, "three")).joinedBy).toBeUndefined();
      await world.store.setPaused("main", { paused: false, ...pause });
      expect((await world.claimNext()).message.text).toBe("two");
    });
  });

  describe("the share and the budgets of a group", () => {
    it("count the bytes of the message that the turn will have", async ({ world }) => {
      const limits = { share: 0.5, storeBytes: 20_000 };
      const group = groupOf({ take: "all", longestText: 100_000 });
      await send(world, "x".repeat(5_000), { group, limits });
      await send(world, "ü", { group, limits, context: "{}" });
      await send(world, "y".repeat(3_000), { group, limits });
      expect(await refusal(send(world, "z", { group, limits }))).toBe("share-full");
      expect(await sharesOf(world.store)).toMatchObject([{ turns: 1, bytes: 2_000 + 5_000 + 2 + 2 + 2 + 3_000 }]);
      await world.clock.advance(30 * SECOND);
      const claimed = await world.claimNext();
      expect(await sharesOf(world.store)).toEqual(await recountShares(world.store));
      await world.end(claimed, { reply: "done" });
      expect(await sharesOf(world.store)).toEqual(await recountShares(world.store));
      await world.store.deleteSession(SESSION, world.clock.now());
      await world.sweep();
      expect(await sharesOf(world.store)).toEqual([]);
    });

    it("refuse openings and joins while a budget that refuses is spent", async ({ world }) => {
      await configureBudgets(world.store, [{ name: "small", per: "day", tokens: 10 }]);
      await send(world, "one");
      await world.start({ session: "chat:b" });
      await world.end(await world.claimNext(), { usage: used(100, 100) });
      expect(await refusal(send(world, "two"))).toBe("budget-exceeded");
      expect(await refusal(send(world, "x", { group: groupOf({ key: "group:2" }) }))).toBe("budget-exceeded");
      expect(await world.store.findGroup(groupOf().key, world.clock.now())).toMatchObject({ requests: 1 });
    });

    it("hold the turn after the close while a budget that pauses is spent", async ({ world }) => {
      // biome-ignore lint/suspicious/noThenProperty: the key of the configuration.
      await configureBudgets(world.store, [{ name: "small", per: "hour", tokens: 10, then: "pause" }]);
      await world.start({ session: "chat:b" });
      await world.end(await world.claimNext(), { usage: used(100, 100) });
      await send(world, "one");
      await send(world, "two");
      await world.clock.advance(30 * SECOND);
      expect((await world.claim()).turns).toEqual([]);
      expect(
        (await send(world, "three", { group: groupOf({ windowMs: 1e7, maxWaitMs: 1e7 }) })).joinedBy,
      ).toBeUndefined();
      await world.clock.advance(3_600 * SECOND);
      expect((await world.claimNext()).message.text).toBe("two");
    });
  });

  if (engine.reopen) {
    it("continues an open group after a restart within the window", async ({ world }) => {
      const { turn } = await send(world, "one", { id: "dlv_1", key: "a" });
      await world.clock.advance(10 * SECOND);
      await world.reopen();
      const joined = await send(world, "two", { key: "b" });
      expect(joined.turn.turnId).toBe(turn.turnId);
      await world.reopen();
      expect(await send(world, "two", { key: "b" })).toMatchObject({ replayed: true, joinedBy: joined.joinedBy });
      expect(await world.claim()).toEqual({ turns: [], nextDueInMs: 30 * SECOND });
      await world.clock.advance(30 * SECOND);
      await world.reopen();
      expect((await world.claimNext()).message.text).toBe("two");
    });
  }
}
