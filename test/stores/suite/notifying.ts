import { describe, expect } from "vitest";
import { NO_POLICY } from "#store/policy.ts";
import type { ClaimedMessage, Notification, NotifyRule, OutgoingResult } from "#store/store.ts";
import { expectFields } from "../fields.ts";
import { testsOn } from "../tests-on.ts";
import { deliveryOf, type Engine, LEASE_MS, LOST, times, type World, type WorldOptions } from "../world.ts";

const STEP: OutgoingResult["step"] = { at: 5, name: "unused", detail: undefined };
const ALL_TURNS = ["turn.completed", "turn.failed", "turn.cancelled"];

function endpoint(name: string, events: readonly string[] = ALL_TURNS, agents?: readonly string[]): NotifyRule {
  return { name, events, agents };
}

/** Sets the endpoints of the policy. */
function configure(world: World, endpoints: readonly NotifyRule[], notifications = 1_000): Promise<void> {
  return world.store.configure({ ...NO_POLICY, notify: endpoints, notifications });
}

async function listed(world: World, query: Partial<Parameters<World["store"]["listNotifications"]>[0]> = {}) {
  return (await world.store.listNotifications({ limit: 100, ...query })).items;
}

/** Ends a turn of its own session. */
async function endTurn(
  world: World,
  how: Parameters<World["end"]>[1] = {},
  options: WorldOptions = {},
): Promise<string> {
  const { turnId } = await world.start({ session: world.newId("chat:x"), ...options });
  await world.end(await world.claimNext(), how);
  return turnId;
}

async function claim(world: World, options: Partial<Parameters<World["store"]["claimOutgoing"]>[0]> = {}) {
  const others = { free: 100, before: Number.POSITIVE_INFINITY };
  return (await world.store.claimOutgoing({ node: "node_a", leaseMs: LEASE_MS, free: {}, others, ...options })).claimed;
}

async function claimNext(world: World): Promise<ClaimedMessage> {
  const [first] = await claim(world, { others: { free: 1, before: Number.POSITIVE_INFINITY } });
  if (!first) throw new Error("no notification can be claimed");
  return first;
}

function end(world: World, { claim }: ClaimedMessage, state: "delivered" | "failed" = "delivered"): Promise<boolean> {
  const result = state === "failed" ? { reason: "410 Gone", code: 410 } : { reason: undefined, code: 204 };
  return world.store.endOutgoing(claim, { state, ...result, step: STEP });
}

function release(world: World, { claim }: ClaimedMessage, delayMs: number, state: "retrying" | "waiting" = "retrying") {
  return world.store.releaseOutgoing(claim, { delayMs, state, reason: "HTTP 503", code: 503, step: STEP });
}

function idOf(turnId: string): string {
  return `ntf_${turnId.slice("turn_".length)}`;
}

export function notifyingTests(engine: Engine): void {
  const it = testsOn(engine);
  describe("notifying endpoints", () => {
    it("queues a notification for each endpoint that has the event of a turn's end", async ({ world }) => {
      await configure(world, [
        endpoint("all"),
        endpoint("failed", ["turn.failed"]),
        endpoint("b.2", ["turn.completed"]),
      ]);
      world.told.length = 0;
      const turnId = await endTurn(
        world,
        { model: "fast", usage: { model: "fast", usage: { input: 3, output: 4 }, latencyMs: 1 } },
        { session: "webhook:a", announce: { channel: undefined, hops: 1 }, delivery: deliveryOf("dlv_1") },
      );
      await world.hears(({ kind }) => kind === "outgoing");
      const now = world.clock.now();
      const all = await listed(world);
      expect(all.map(({ endpoint }) => endpoint)).toEqual(["b.2", "all"]);
      const { data, ...first } = all[1] as Notification;
      expect(first).toEqual({
        notificationId: `${idOf(turnId)}.all`,
        eventId: idOf(turnId),
        endpoint: "all",
        type: "turn.completed",
        agent: "main",
        turnId,
        sessionId: "webhook:a",
        at: now,
        hops: 1,
        state: "waiting",
        attempts: 0,
        code: undefined,
        reason: undefined,
        createdAt: now,
        endedAt: undefined,
        nextAt: undefined,
      });
      const time = new Date(now).toISOString();
      expect(JSON.parse(data)).toEqual({
        turnId,
        sessionId: "webhook:a",
        agent: "main",
        status: "completed",
        surface: "rest",
        caller: "ci",
        model: "fast",
        usage: { input: 3, output: 4, total: 7 },
        error: null,
        deliveryId: "dlv_1",
        createdAt: time,
        endedAt: time,
        hops: 1,
      });
      expect(all[0]).toMatchObject({ notificationId: `${idOf(turnId)}.b.2`, eventId: idOf(turnId), data });
      expect(await world.store.getNotification(`${idOf(turnId)}.all`)).toEqual(all[1]);
      expect(await world.store.getNotification(`${idOf(turnId)}.failed`)).toBeUndefined();
      expect(world.store.stats()).toMatchObject({ announcements: 0, notifications: { all: 1, "b.2": 1 } });
      expect((await claim(world)).map(({ message }) => message)).toEqual([
        { id: `${idOf(turnId)}.all`, endpoint: "notify:all", hops: 1, createdAt: now, attempts: 0 },
        { id: `${idOf(turnId)}.b.2`, endpoint: "notify:b.2", hops: 1, createdAt: now, attempts: 0 },
      ]);
    });

    it("queues nothing for events and agents that no endpoint has, or without endpoints", async ({ world }) => {
      await endTurn(world);
      await configure(world, [endpoint("other", ["turn.failed"]), endpoint("of", ALL_TURNS, ["billing"])]);
      await endTurn(world);
      expect(await listed(world)).toEqual([]);
      await endTurn(world, {}, { agent: "billing" });
      expect(await listed(world)).toMatchObject([{ endpoint: "of", agent: "billing" }]);
      await configure(world, []);
      await endTurn(world, { status: "failed" });
      expect(await listed(world)).toHaveLength(1);
    });

    it("MUST queue one for every way in which a turn ends, and none for a compaction", async ({ world }) => {
      await configure(world, [endpoint("ops")]);
      const { store, clock } = world;
      const ends: [turnId: string, type: string][] = [];
      ends.push([await endTurn(world), "turn.completed"]);
      ends.push([await endTurn(world, { status: "failed" }), "turn.failed"]);
      ends.push([await endTurn(world, { status: "cancelled" }), "turn.cancelled"]);

      const cancelled = await world.start({ session: "chat:a" });
      await store.cancelTurn(cancelled.turnId, clock.now());
      ends.push([cancelled.turnId, "turn.cancelled"]);

      const released = await world.start({ session: "chat:b" });
      const running = await world.claimNext();
      await store.cancelTurn(released.turnId, clock.now());
      expect(await listed(world)).toHaveLength(ends.length);
      await world.release(running);
      ends.push([released.turnId, "turn.cancelled"]);

      const lost = await world.start({ session: "chat:c" });
      await world.claimNext();
      await clock.advance(LEASE_MS);
      await world.sweep({ maxAttempts: 1 });
      ends.push([lost.turnId, "turn.failed"]);

      const removed = await world.start({ session: "chat:d", agent: "gone" });
      await store.failQueuedTurns("gone", LOST, clock.now());
      ends.push([removed.turnId, "turn.failed"]);

      const deleted = [await world.start({ session: "chat:e" }), await world.start({ session: "chat:e" })];
      await world.claimNext();
      await store.deleteSession("chat:e", clock.now());
      ends.push(...deleted.map(({ turnId }): [string, string] => [turnId, "turn.cancelled"]));

      const found = await listed(world);
      const sorted = (pairs: readonly (readonly [string | undefined, string])[]) => pairs.map(String).sort();
      expect(sorted(found.map(({ turnId, type }) => [turnId, type]))).toEqual(sorted(ends));
    });

    it("outlives its session and its turn", async ({ world }) => {
      await configure(world, [endpoint("ops")]);
      const turnId = await endTurn(world, {}, { session: "chat:a" });
      await world.store.deleteSession("chat:a", world.clock.now());
      const of = await claimNext(world);
      expect(of.message.id).toBe(`${idOf(turnId)}.ops`);
      expect(await end(world, of)).toBe(true);
      expect(await listed(world)).toMatchObject([{ turnId, state: "delivered" }]);
    });

    it("shows each attempt, and ends once", async ({ world }) => {
      await configure(world, [endpoint("ops")]);
      const turnId = await endTurn(world);
      const read = () => world.store.getNotification(`${idOf(turnId)}.ops`);
      await release(world, await claimNext(world), 5_000);
      const tried = { attempts: 1, code: 503, reason: "HTTP 503", endedAt: undefined };
      expectFields(await read(), { state: "retrying", ...tried, nextAt: world.clock.now() + 5_000 });
      await world.clock.advance(5_000);
      const of = await claimNext(world);
      expect(of.message).toMatchObject({ attempts: 1 });
      await release(world, of, 0, "waiting");
      expectFields(await read(), { state: "waiting", ...tried, attempts: 2, nextAt: undefined });
      const last = await claimNext(world);
      expect(await end(world, of)).toBe(false);
      expect(await end(world, last, "failed")).toBe(true);
      expect(await end(world, last)).toBe(false);
      const ended = { attempts: 3, code: 410, reason: "410 Gone", endedAt: world.clock.now(), nextAt: undefined };
      expectFields(await read(), { state: "failed", ...ended });
      expect(world.store.stats().notifications).toEqual({});
    });

    it("without a result, an attempt changes only the number of attempts", async ({ world }) => {
      await configure(world, [endpoint("ops")]);
      await endTurn(world);
      const { claim } = await claimNext(world);
      await world.store.releaseOutgoing(claim, { delayMs: 0, state: undefined, reason: "stopped", step: STEP });
      expectFields((await listed(world))[0], { state: "waiting", reason: undefined, attempts: 1 });
    });

    it("an attempt without a request counts for nothing, and keeps the status of the last one", async ({ world }) => {
      await configure(world, [endpoint("ops")]);
      await endTurn(world);
      await release(world, await claimNext(world), 0);
      const { claim } = await claimNext(world);
      const unsent = { reason: "stopped", isUnsent: true, step: STEP } as const;
      await world.store.releaseOutgoing(claim, { delayMs: 0, state: "waiting", ...unsent });
      const last = await claimNext(world);
      expectFields((await listed(world))[0], { state: "waiting", reason: "stopped", code: 503, attempts: 1 });
      await world.store.endOutgoing(last.claim, { state: "failed", ...unsent });
      expectFields((await listed(world))[0], { state: "failed", code: 503, attempts: 1 });
    });

    it("puts one that failed behind the others", async ({ world }) => {
      await configure(world, [endpoint("ops")]);
      const ids = [`${idOf(await endTurn(world))}.ops`];
      await release(world, await claimNext(world), 1_000);
      ids.unshift(`${idOf(await endTurn(world))}.ops`);
      await world.clock.advance(1_000);
      expect((await claim(world)).map(({ message }) => message.id)).toEqual(ids);
    });

    it("lists the newest first in pages, filtered by endpoint and state", async ({ world }) => {
      await configure(world, [endpoint("a"), endpoint("b")]);
      const turnIds: string[] = [];
      for (let n = 0; n < 3; n++) turnIds.push(await endTurn(world));
      await end(world, await claimNext(world));
      const ids = turnIds.flatMap((turnId) => [`${idOf(turnId)}.a`, `${idOf(turnId)}.b`]).reverse();
      const found: string[] = [];
      for (let cursor: string | undefined, page = 0; page === 0 || cursor !== undefined; page++) {
        const { items, next } = await world.store.listNotifications({ limit: 4, ...(cursor && { cursor }) });
        found.push(...items.map(({ notificationId }) => notificationId));
        cursor = next;
      }
      expect(found).toEqual(ids);
      const idsOf = async (query: Parameters<typeof listed>[1]) =>
        (await listed(world, query)).map(({ notificationId }) => notificationId);
      expect(await idsOf({ endpoint: "b" })).toEqual(ids.filter((id) => id.endsWith(".b")));
      expect(await idsOf({ state: "delivered" })).toEqual([`${idOf(turnIds[0] as string)}.a`]);
      expect(await idsOf({ state: "delivered", endpoint: "b" })).toEqual([]);
      await expect(listed(world, { cursor: "x" })).rejects.toMatchObject({ name: "invalid-params" });
    });

    it("erases the notifications that ended first, above the limit of the policy", async ({ world }) => {
      await configure(world, [endpoint("ops")], 4);
      const ids = (await Promise.all(times(4, () => endTurn(world)))).map((turnId) => `${idOf(turnId)}.ops`);
      const all = await claim(world);
      expect(all).toHaveLength(4);
      await configure(world, [endpoint("ops")], 2);
      for (const of of [...all].reverse()) await end(world, of);
      const oldest = all.slice(0, 2).map(({ message }) => message.id);
      expect((await listed(world)).map(({ notificationId }) => notificationId).sort()).toEqual(oldest.sort());
      const erased = ids.find((id) => !oldest.includes(id)) as string;
      expect(await world.store.getNotification(erased)).toBeUndefined();
      const before = world.store.stats().bytes;
      await configure(world, [endpoint("ops")], 1);
      await endTurn(world);
      await end(world, await claimNext(world));
      expect(await listed(world)).toHaveLength(1);
      expect(world.store.stats().bytes).toBeLessThan(before + 5_000);
    });

    it("MUST fail the oldest that wait for an endpoint above the limit of the policy, so that the store does not fill", async ({
      world,
    }) => {
      await configure(world, [endpoint("dead"), endpoint("live", ["turn.failed"])], 3);
      const ids = [await endTurn(world), await endTurn(world)].map((turnId) => `${idOf(turnId)}.dead`);
      const sent = await claimNext(world);
      expect(sent.message.id).toBe(ids[0]);
      for (let n = 0; n < 2; n++) ids.push(`${idOf(await endTurn(world))}.dead`);
      expect(world.store.stats().notifications).toEqual({ dead: 3 });
      const failed = {
        attempts: 0,
        reason: "too many notifications waited for the endpoint",
        endedAt: world.clock.now(),
      };
      expect(await listed(world, { state: "failed" })).toMatchObject([{ notificationId: ids[1], ...failed }]);
      expect((await claim(world)).map(({ message }) => message.id)).toEqual(ids.slice(2));
      expect(await end(world, sent)).toBe(true);
      for (let n = 0; n < 10; n++) await endTurn(world, { status: "failed" });
      expect(world.store.stats().notifications).toEqual({ dead: expect.any(Number), live: 3 });
      expect((await listed(world, { endpoint: "live" })).length).toBe(6);
    });

    it("does not erase the ended ones of another endpoint, and a sweep applies a smaller limit", async ({ world }) => {
      await configure(world, [endpoint("alerts", ["turn.failed"]), endpoint("chatty", ["turn.completed"])], 3);
      for (let n = 0; n < 2; n++) {
        await endTurn(world, { status: "failed" });
        await end(world, await claimNext(world), "failed");
      }
      for (let n = 0; n < 5; n++) {
        await endTurn(world);
        await end(world, await claimNext(world));
      }
      expect(await listed(world, { endpoint: "alerts" })).toHaveLength(2);
      expect(await listed(world, { endpoint: "chatty" })).toHaveLength(3);
      await configure(world, [], 1);
      await world.sweep();
      expect((await listed(world)).map(({ endpoint }) => endpoint)).toEqual(["chatty", "alerts"]);
    });

    it("queues an ended one again with the same event, at its place in the list", async ({ world }) => {
      await configure(world, [endpoint("ops")]);
      const [turnId] = [await endTurn(world), await endTurn(world)];
      const id = `${idOf(turnId)}.ops`;
      const ended: ClaimedMessage[] = [];
      let other: ClaimedMessage | undefined;
      for (const state of ["failed", "delivered"] as const) {
        const of = await claimNext(world);
        expect(of.message).toMatchObject({ id, attempts: 0 });
        await release(world, of, 1_000);
        await world.clock.advance(1_000);
        const all = await claim(world);
        other ??= all[0];
        ended.push(all.at(-1) as ClaimedMessage);
        await end(world, ended.at(-1) as ClaimedMessage, state);
        world.told.length = 0;
        const now = world.clock.now();
        const replayed = await world.store.replayNotification(id, { now });
        await world.hears(({ kind }) => kind === "outgoing");
        const fresh = { attempts: 0, code: undefined, reason: undefined, endedAt: undefined, createdAt: now };
        expectFields(replayed, { notificationId: id, eventId: idOf(turnId), state: "waiting", ...fresh });
        expect((await listed(world))[1]).toEqual(replayed);
        for (const earlier of ended) expect(await end(world, earlier)).toBe(false);
      }
      await end(world, other as ClaimedMessage);
      expect(world.store.stats().notifications).toEqual({ ops: 1 });
      expect(await world.store.replayNotification("ntf_unknown.ops", { now: 1 })).toBeUndefined();
    });

    it("a replay of one that is retried makes it due at once, and leaves one that is sent or waits", async ({
      world,
    }) => {
      await configure(world, [endpoint("ops")]);
      const turnId = await endTurn(world);
      const id = `${idOf(turnId)}.ops`;
      const replay = () => world.store.replayNotification(id, { now: world.clock.now() });
      expect(await replay()).toMatchObject({ state: "waiting", attempts: 0 });
      const of = await claimNext(world);
      expect(await replay()).toMatchObject({ state: "waiting", attempts: 0 });
      expect(await claim(world)).toEqual([]);
      await release(world, of, 3_600_000);
      expect(await claim(world)).toEqual([]);
      world.told.length = 0;
      expect(await replay()).toMatchObject({ state: "retrying", attempts: 1, nextAt: world.clock.now() });
      await world.hears(({ kind }) => kind === "outgoing");
      expect((await claimNext(world)).message).toMatchObject({ id, attempts: 1 });
    });

    it("queues an event of the gateway once, also after it has ended", async ({ world }) => {
      const about = ["agent.failing", "health.changed"];
      await configure(world, [endpoint("ops", about), endpoint("of", about, ["main"])]);
      const { store, clock } = world;
      const noted = { now: clock.now(), eventId: "ntf_k_1", type: "agent.failing", agent: "main", data: '{"a":1}' };
      for (let n = 0; n < 2; n++) await store.notifyEvent(noted);
      await store.notifyEvent({ now: 7, eventId: "ntf_h_1", type: "health.changed", data: "{}" });
      await store.notifyEvent({ now: 7, eventId: "ntf_h_2", type: "key.expiring", data: "{}" });
      for (const of of await claim(world)) await end(world, of);
      await store.notifyEvent(noted);
      const found = await listed(world);
      expect(found.map(({ notificationId }) => notificationId)).toEqual(["ntf_h_1.ops", "ntf_k_1.of", "ntf_k_1.ops"]);
      expectFields(found[2], { agent: "main", data: '{"a":1}', at: clock.now(), hops: 0, turnId: undefined });
      expectFields(found[0], { agent: undefined, at: 7 });
    });

    it("claims only notifications created before the bound of their endpoint", async ({ world }) => {
      await configure(world, [endpoint("ops")]);
      await endTurn(world);
      const bound = world.clock.now();
      const options = { free: { "notify:ops": 1 } };
      expect(await claim(world, { ...options, before: { "notify:ops": bound } })).toEqual([]);
      expect(await claim(world, { ...options, before: { "notify:ops": bound + 1 } })).toHaveLength(1);
    });

    it("does not keep a session from its retention, and counts for the bytes of the store", async ({ world }) => {
      await configure(world, [endpoint("ops")]);
      await endTurn(world, {}, { session: "chat:a" });
      await world.sweep({ sessionsBefore: world.clock.now() });
      expect(await world.store.getSession("chat:a")).toBeUndefined();
      expect(await listed(world)).toHaveLength(1);
      expect(world.store.stats().bytes).toBeGreaterThan(1_000);
    });
  });
}
