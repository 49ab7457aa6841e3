import { describe, expect } from "vitest";
import type { ClaimedMessage, DeliveryStep } from "#store/store.ts";
import { expectFields } from "../fields.ts";
import { testsOn } from "../tests-on.ts";
import { deliveryOf, type Engine, LEASE_MS, type World, type WorldOptions } from "../world.ts";

const STEP: DeliveryStep = { at: 5, name: "announcement.delivered", detail: "{}" };

/** Completes a turn whose reply is announced to a channel. */
async function announce(world: World, options: WorldOptions = {}): Promise<string> {
  const { turnId } = await world.start({ announce: { channel: "ops", hops: 0 }, ...options });
  await world.end(await world.claimNext());
  return turnId;
}

/** Any messages of endpoints that the claim does not name. */
function anyOf(free: number) {
  return { free, before: Number.POSITIVE_INFINITY };
}

function claim(world: World, options: Partial<Parameters<World["store"]["claimOutgoing"]>[0]> = {}) {
  return world.store.claimOutgoing({ node: "node_a", leaseMs: LEASE_MS, free: {}, others: anyOf(100), ...options });
}

async function claimed(world: World, options?: Parameters<typeof claim>[1]): Promise<string[]> {
  return (await claim(world, options)).claimed.map(({ message }) => message.id);
}

/** Claims the oldest announcement of the only channel. */
async function claimNext(world: World): Promise<ClaimedMessage> {
  const { claimed } = await claim(world, { others: anyOf(1) });
  if (!claimed[0]) throw new Error("no announcement can be claimed");
  return claimed[0];
}

function end(world: World, { claim }: ClaimedMessage, retryInMs?: number) {
  return retryInMs === undefined
    ? world.store.endOutgoing(claim, { state: "delivered", reason: undefined, step: STEP })
    : world.store.releaseOutgoing(claim, {
        delayMs: retryInMs,
        state: "retrying",
        reason: "HTTP 503",
        step: STEP,
      });
}

function fail(world: World, of: ClaimedMessage) {
  const reason = "410 Gone";
  return world.store.endOutgoing(of.claim, { state: "failed", reason, step: STEP });
}

export function announcingTests(engine: Engine): void {
  const it = testsOn(engine);
  describe("announcing replies", () => {
    it("notifies watchers of an announcement whose turn ends in the tick in which the next is claimed", async ({
      world,
    }) => {
      await world.start({ announce: { channel: "ops", hops: 0 } });
      const turn = await world.claimNext();
      await world.start();
      world.told.length = 0;
      const [, { turns }] = await Promise.all([world.end(turn), world.claim()]);
      expect(turns).toHaveLength(1);
      await world.hears(({ kind }) => kind === "outgoing");
    });

    it("stores an announcement when a turn that requested one completes, and notifies watchers", async ({ world }) => {
      const options = { session: "webhook:a", agent: "other", delivery: deliveryOf("dlv_1") };
      world.told.length = 0;
      const turnId = await announce(world, { ...options, announce: { channel: "ops ü", hops: 2 } });
      await world.hears(({ kind }) => kind === "outgoing");
      expect(world.store.stats().announcements).toBe(1);
      const all = await claim(world);
      const of = { id: turnId, sessionId: "webhook:a", agent: "other", channel: "ops ü", hops: 2, deliveryId: "dlv_1" };
      const message = { ...of, endpoint: "channel:ops ü", createdAt: world.clock.now(), attempts: 0 };
      expect(all).toEqual({ claimed: [{ claim: expect.anything(), message }], nextDueInMs: undefined });
      expect(await claimed(world)).toEqual([]);
    });

    it("stores no announcement if the turn did not request one or did not complete", async ({ world }) => {
      await announce(world, { announce: undefined });
      for (const status of ["failed", "cancelled"] as const) {
        await world.start({ announce: { channel: "ops", hops: 0 } });
        await world.end(await world.claimNext(), { status });
      }
      const { turnId } = await world.start({ announce: { channel: "ops", hops: 0 } });
      await world.store.cancelTurn(turnId, world.clock.now());
      expect(await claimed(world)).toEqual([]);
      expect(world.store.stats().announcements).toBe(0);
    });

    it("stores one announcement however often the turn was tried, and none for a late end of the turn", async ({
      world,
    }) => {
      await world.start({ announce: { channel: "ops", hops: 0 } });
      const slow = await world.claimNext();
      await world.clock.advance(LEASE_MS);
      await world.sweep();
      expect(await world.end(slow)).toBe(false);
      expect(world.store.stats().announcements).toBe(0);
      await world.end(await world.claimNext());
      expect(world.store.stats().announcements).toBe(1);
    });

    it("returns the oldest first, up to the free places of their endpoints", async ({ world }) => {
      const ids: string[] = [];
      for (let n = 0; n < 6; n++) {
        ids.push(await announce(world, { announce: { channel: n % 3 === 0 ? "slow" : "ops", hops: 0 } }));
      }
      expect(await claimed(world, { others: anyOf(0) })).toEqual([]);
      expect(await claimed(world, { free: { "channel:ops": -1, "channel:slow": 0 } })).toEqual([]);
      expect(await claimed(world, { others: anyOf(1) })).toEqual(ids.slice(0, 2));
      expect(await claimed(world, { free: { "channel:slow": 0 }, others: anyOf(2) })).toEqual([ids[2], ids[4]]);
      expect(await claimed(world, { free: { "channel:slow": 9, "channel:else": 9 }, others: anyOf(0) })).toEqual([
        ids[3],
      ]);
      expect(await claimed(world)).toEqual([ids[5]]);
    });

    it("gives messages of endpoints that a claim does not name only from a certain age on", async ({ world }) => {
      const old = await announce(world, { announce: { channel: "removed", hops: 0 } });
      await world.clock.advance(1_000);
      const named = await announce(world);
      await announce(world, { announce: { channel: "removed", hops: 0 } });
      const free = { "channel:ops": 1 };
      const claimAt = (before: number) => claimed(world, { free, others: { free: 9, before } });
      expect(await claimAt(world.clock.now() - 1_000)).toEqual([named]);
      expect(await claimAt(world.clock.now())).toEqual([old]);
    });

    it("is deleted when it ends, and its delivery shows the result", async ({ world }) => {
      await announce(world, {
        delivery: { ...deliveryOf("dlv_1"), steps: [{ at: 1, name: "first", detail: undefined }] },
      });
      const of = await claimNext(world);
      expect(await end(world, of)).toBe(true);
      expect((await world.store.getDelivery("dlv_1"))?.steps).toEqual([
        { at: 1, name: "first", detail: undefined },
        STEP,
      ]);
      expect(world.store.stats().announcements).toBe(0);
      expect(await claim(world)).toEqual({ claimed: [], nextDueInMs: undefined });
      expect(await end(world, of)).toBe(false);
      expect((await world.store.getDelivery("dlv_1"))?.steps).toHaveLength(2);
    });

    it("is retried after its delay with one more attempt, before younger waiting ones", async ({ world }) => {
      const first = await announce(world, { delivery: deliveryOf("dlv_1") });
      const of = await claimNext(world);
      expect(await end(world, of, 1_000)).toBe(true);
      const second = await announce(world);
      expect(world.store.stats().announcements).toBe(2);
      expect((await claim(world, { others: anyOf(0) })).nextDueInMs).toBe(1_000);
      await world.clock.advance(999);
      expect(await claim(world, { others: anyOf(0) })).toEqual({ claimed: [], nextDueInMs: 1 });
      expect(await end(world, of)).toBe(false);
      world.clock.jump(3_600_000);
      expect((await claim(world, { others: anyOf(0) })).nextDueInMs).toBe(1);
      await world.clock.advance(1);
      const all = await claim(world);
      expect(all.claimed.map(({ message }) => [message.id, message.attempts])).toEqual([
        [first, 1],
        [second, 0],
      ]);
      expect(all.nextDueInMs).toBeUndefined();
      expect(all.claimed[0]?.claim.fence).toBeGreaterThan(of.claim.fence);
      expect((await world.store.getDelivery("dlv_1"))?.steps).toEqual([STEP]);
    });

    it("can be claimed again when its lease has expired, and the earlier claim is then not valid", async ({
      world,
    }) => {
      const turnId = await announce(world);
      const slow = await claimNext(world);
      await world.clock.advance(LEASE_MS - 1);
      await world.sweep();
      expect(await claimed(world)).toEqual([]);
      await world.clock.advance(1);
      world.told.length = 0;
      await world.sweep();
      await world.hears(({ kind }) => kind === "outgoing");
      const again = await claimNext(world);
      expect(again.message).toMatchObject({ id: turnId, attempts: 0 });
      expect(await end(world, slow)).toBe(false);
      expect(await end(world, again)).toBe(true);
    });

    it("remains claimed while its lease is extended, together with the leases of turns", async ({ world }) => {
      await announce(world);
      await world.start();
      const { claim: ofTurn } = await world.claimNext();
      const of = await claimNext(world);
      for (let n = 0; n < 3; n++) {
        await world.clock.advance(LEASE_MS - 1);
        expect(await world.store.extendClaims([ofTurn, of.claim], LEASE_MS)).toEqual([]);
        await world.sweep();
        expect(await claimed(world)).toEqual([]);
      }
      await world.clock.advance(LEASE_MS);
      await world.sweep();
      const again = await claimNext(world);
      expect(await world.store.extendClaims([again.claim, of.claim, ofTurn], LEASE_MS)).toEqual([of.claim, ofTurn]);
      expect(await end(world, again)).toBe(true);
      expect(await world.store.extendClaims([again.claim], LEASE_MS)).toEqual([again.claim]);
    });

    it("notifies watchers when it is released", async ({ world }) => {
      await announce(world);
      const of = await claimNext(world);
      world.told.length = 0;
      await end(world, of, 0);
      await world.hears(({ kind }) => kind === "outgoing");
    });

    it("is deleted with its session, whether it is waiting, delayed or claimed", async ({ world }) => {
      for (const session of ["chat:claimed", "chat:delayed", "chat:waiting", "chat:kept"])
        await announce(world, { session });
      const of = await claimNext(world);
      await end(world, await claimNext(world), 1_000);
      for (const session of ["chat:claimed", "chat:delayed", "chat:waiting"]) {
        await world.store.deleteSession(session, world.clock.now());
      }
      expect(world.store.stats().announcements).toBe(1);
      expect(await end(world, of)).toBe(false);
      await world.clock.advance(LEASE_MS);
      await world.sweep();
      const { claimed } = await claim(world);
      expect(claimed).toMatchObject([{ message: { sessionId: "chat:kept" } }]);
    });

    it("sets the state and the reason on its turn, and a change of them is an outcome of the delivery", async ({
      world,
    }) => {
      const turnId = await announce(world, { announce: { channel: "ops ü", hops: 2 }, delivery: deliveryOf("dlv_1") });
      const announcement = { channel: "ops ü", hops: 2, state: "waiting", reason: undefined };
      const read = async () => {
        const [delivery] = (await world.store.listDeliveries({ limit: 1 })).items;
        expect(delivery).toMatchObject({ outcome: "completed" });
        expect((await world.store.getTurn(turnId))?.announcement).toEqual(delivery?.announcement);
        expect((await world.store.listTurns({ limit: 1 })).items[0]?.announcement).toEqual(delivery?.announcement);
        return delivery?.announcement;
      };
      expect(await read()).toEqual(announcement);
      const heard = () => world.hears((news) => news.kind === "outcome" && news.deliveryId === "dlv_1");
      world.told.length = 0;
      await end(world, await claimNext(world), 1_000);
      await heard();
      expect(await read()).toEqual({ ...announcement, state: "retrying", reason: "HTTP 503" });
      await world.clock.advance(1_000);
      world.told.length = 0;
      await fail(world, await claimNext(world));
      await heard();
      expect(await read()).toEqual({ ...announcement, state: "failed", reason: "410 Gone" });
    });

    it("can be announced again after it failed or was delivered", async ({ world }) => {
      const options = { announce: { channel: "ops ü", hops: 2 }, delivery: deliveryOf("dlv_1") };
      const turnId = await announce(world, options);
      const endings = [fail, (of: World, it: ClaimedMessage) => end(of, it)];
      for (const ends of endings) {
        const of = await claimNext(world);
        await end(world, of, 1_000);
        await world.clock.advance(1_000);
        await ends(world, await claimNext(world));
        expect(world.store.stats().announcements).toBe(0);
        world.told.length = 0;
        const again = await world.store.announceAgain(turnId, { now: world.clock.now(), by: "console", hops: 0 });
        await world.hears(({ kind }) => kind === "outgoing");
        await world.hears((news) => news.kind === "outcome" && news.deliveryId === "dlv_1");
        expect(again).toEqual(await world.store.getTurn(turnId));
        expect(again).toMatchObject({
          status: "completed",
          reply: "hi",
          announcement: { channel: "ops ü", hops: 2, state: "waiting", reason: undefined },
        });
        expect((await world.store.getDelivery("dlv_1"))?.steps.at(-1)).toEqual({
          at: world.clock.now(),
          name: "announcement.requeued",
          detail: JSON.stringify({ channel: "ops ü", by: "console" }),
        });
      }
      const { message } = await claimNext(world);
      const of = { id: turnId, sessionId: "chat:a", agent: "main", channel: "ops ü", hops: 2, deliveryId: "dlv_1" };
      expect(message).toEqual({ ...of, endpoint: "channel:ops ü", createdAt: world.clock.now(), attempts: 0 });
    });

    it("sends again with the hops of the later request, and never with fewer than before", async ({ world }) => {
      const turnId = await announce(world, { announce: { channel: "ops", hops: 1 } });
      for (const [asked, sent] of [
        [0, 1],
        [2, 2],
        [1, 2],
      ] as const) {
        await end(world, await claimNext(world));
        const { announcement } = await world.store.announceAgain(turnId, { now: 1, by: "ops", hops: asked });
        expect(announcement).toMatchObject({ hops: sent });
        const next = await claimNext(world);
        expect(next.message.hops).toBe(sent);
        await end(world, next, 0);
      }
    });

    it("MUST NOT end when a late answer to an earlier announcement of the same turn arrives", async ({ world }) => {
      const turnId = await announce(world);
      const late: ClaimedMessage[] = [];
      for (let n = 0; n < 3; n++) {
        late.push(await claimNext(world));
        await end(world, late.at(-1) as ClaimedMessage, 0);
      }
      late.push(await claimNext(world));
      await end(world, late.at(-1) as ClaimedMessage);
      await world.store.announceAgain(turnId, { now: world.clock.now(), by: "ops", hops: 0 });
      for (let n = 0; n < 3; n++) {
        const of = await claimNext(world);
        for (const earlier of late) expect(await fail(world, earlier)).toBe(false);
        expect(await end(world, of, 0)).toBe(true);
        late.push(of);
      }
      expect((await world.store.getTurn(turnId))?.announcement).toMatchObject({ state: "retrying" });
    });

    it("a release without a result leaves the state and the reason of the turn unchanged", async ({ world }) => {
      const turnId = await announce(world);
      const giveBack = async () => {
        const returned = { delayMs: 0, state: undefined, reason: "the gateway stopped", step: STEP };
        expect(await world.store.releaseOutgoing((await claimNext(world)).claim, returned)).toBe(true);
        return (await world.store.getTurn(turnId))?.announcement;
      };
      expectFields(await giveBack(), { state: "waiting", reason: undefined });
      await end(world, await claimNext(world), 0);
      expect(await giveBack()).toMatchObject({ state: "retrying", reason: "HTTP 503" });
    });

    it("is not announced again if it is waiting or being sent, was not announced, or does not exist", async ({
      world,
    }) => {
      const again = (turnId: string) =>
        world.store.announceAgain(turnId, { now: world.clock.now(), by: "ops", hops: 0 });
      const refused = expect.objectContaining({ name: "reply-not-announceable" });
      const waiting = await announce(world);
      await expect(again(waiting)).rejects.toEqual(refused);
      const of = await claimNext(world);
      await expect(again(waiting)).rejects.toEqual(refused);
      await end(world, of, 1_000);
      await expect(again(waiting)).rejects.toEqual(refused);
      await expect(again(await announce(world, { announce: undefined }))).rejects.toEqual(refused);
      const { turnId: running } = await world.start({ announce: { channel: "ops", hops: 0 } });
      await expect(again(running)).rejects.toEqual(refused);
      await world.end(await world.claimNext(), { status: "failed" });
      await expect(again(running)).rejects.toEqual(refused);
      const unknown = expect.objectContaining({ name: "turn-not-found" });
      await expect(again("turn_unknown")).rejects.toEqual(unknown);
      await world.store.deleteSession("chat:a", world.clock.now());
      await expect(again(waiting)).rejects.toEqual(unknown);
      expect(world.store.stats().announcements).toBe(0);
    });

    it("prevents the deletion of its session by age until it has ended", async ({ world }) => {
      await announce(world);
      await announce(world, { session: "chat:b", announce: undefined });
      const before = { sessionsBefore: world.clock.now() };
      await world.sweep(before);
      expect(await world.store.getSession("chat:a")).toBeDefined();
      expect(await world.store.getSession("chat:b")).toBeUndefined();
      await end(world, await claimNext(world));
      await world.sweep(before);
      expect(await world.store.getSession("chat:a")).toBeUndefined();
    });
  });
}
