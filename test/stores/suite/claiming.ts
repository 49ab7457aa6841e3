import { describe, expect } from "vitest";
import { expectFields } from "../fields.ts";
import { testsOn } from "../tests-on.ts";
import { type Engine, LEASE_MS, used, type World } from "../world.ts";

async function claimOneByOne(world: World, count: number): Promise<string[]> {
  const turnIds: string[] = [];
  for (let n = 0; n < count; n++) turnIds.push((await world.claimNext()).turn.turnId);
  return turnIds;
}

export function claimingTests(engine: Engine): void {
  const it = testsOn(engine);
  describe("claiming turns", () => {
    it("returns a turn with its message, as running, and adds the entries for that", async ({ world }) => {
      const { turnId, seq } = await world.start({ text: "hello" });
      await world.clock.advance(100);
      const claimed = await world.claimNext({ node: "node_b" });
      expect(claimed.claim).toEqual({ turnId, sessionId: "chat:a", node: "node_b", fence: expect.any(Number) });
      expect(claimed.message).toEqual({ text: "hello", outside: false });
      expect(claimed.turn).toMatchObject({ status: "running", attempt: 1, startedAt: world.clock.now(), seq });
      expect(await world.store.getTurn(turnId)).toEqual(claimed.turn);
      const [, , started, created] = await world.entries();
      expect(started).toEqual({ seq: 3, at: world.clock.now(), turnId, name: "turn.started", attempt: 1 });
      expect(created).toMatchObject({ seq: claimed.replySeq, name: "message.created", role: "assistant", text: "" });
      expect(created).toMatchObject({ messageId: claimed.replyMessageId });
      expect(await world.store.getSession("chat:a")).toMatchObject({ turnsQueued: 0 });
    });

    it("returns at each attempt the number of hops that led to the turn, whether its reply is announced or not", async ({
      world,
    }) => {
      for (const [session, channel] of [
        ["chat:a", undefined],
        ["chat:b", "ops"],
      ] as const) {
        await world.start({ session, announce: { channel, hops: 2 } });
        for (let attempt = 1; attempt < 3; attempt++) {
          const claimed = await world.claimNext();
          expect(claimed.hops).toBe(2);
          await world.release(claimed);
        }
        await world.end(await world.claimNext());
      }
      expect(world.store.stats().announcements).toBe(1);
      await world.start();
      expect((await world.claimNext()).hops).toBe(0);
    });

    it("returns only the first turn of a session's queue, and the next one when that has ended", async ({ world }) => {
      const [first, second] = [await world.start(), await world.start()];
      const { turns } = await world.claim();
      expect(turns.map(({ turn }) => turn.turnId)).toEqual([first.turnId]);
      expect((await world.claim()).turns).toEqual([]);
      await world.end(turns[0] as (typeof turns)[0]);
      expect((await world.claimNext()).turn.turnId).toBe(second.turnId);
    });

    it("returns the next turn of a session to a claim that is called right after the end of the previous turn", async ({
      world,
    }) => {
      const [, second] = [await world.start(), await world.start(), await world.start()];
      const first = await world.claimNext();
      const [isEnded, { turns }] = await Promise.all([world.end(first), world.claim()]);
      expect(isEnded).toBe(true);
      expect(turns.map(({ turn }) => turn.turnId)).toEqual([second?.turnId]);
      expect((await world.entries()).map(({ name }) => name).slice(-4)).toEqual([
        "message.completed",
        "turn.completed",
        "turn.started",
        "message.created",
      ]);
    });

    it("returns at most as many turns as there are free places", async ({ world }) => {
      for (const session of ["chat:a", "chat:b", "chat:c"]) await world.start({ session });
      expect((await world.claim({ free: 2 })).turns).toHaveLength(2);
      expect((await world.claim({ free: 2 })).turns).toHaveLength(1);
      expect((await world.claim({ free: 2 })).turns).toHaveLength(0);
    });

    it("returns at most as many turns of an agent as the agent has free places, and still the turns of other agents", async ({
      world,
    }) => {
      const free: Record<string, number> = { full: 0, small: 2, large: 9 };
      for (const agent of Object.keys(free)) {
        for (let n = 0; n < 4; n++) await world.start({ agent, session: `chat:${agent}${n}` });
      }
      const { turns } = await world.claim({ freeOf: (agent) => free[agent] ?? 0 });
      const count = (agent: string) => turns.filter(({ turn }) => turn.agent === agent).length;
      expect([count("full"), count("small"), count("large")]).toEqual([0, 2, 4]);
    });

    it("reads the free places of each agent with ready turns", async ({ world }) => {
      await world.start({ agent: "one", session: "chat:1" });
      await world.start({ agent: "two", session: "chat:2" });
      const asked = new Set<string>();
      await world.claim({ freeOf: (agent) => asked.add(agent).size * 0 });
      expect([...asked].sort()).toEqual(["one", "two"]);
    });

    it("returns the oldest turns first, whichever agent has them, so that no agent's turns wait behind all turns of another", async ({
      world,
    }) => {
      const expected: string[] = [];
      for (const [n, agent] of ["busy", "busy", "quiet", "busy", "busy"].entries()) {
        expected.push((await world.start({ agent, session: `chat:${n}` })).turnId);
        await world.clock.advance(1);
      }
      expect(await claimOneByOne(world, 5)).toEqual(expected);
    });

    it("alternates between turns with a waiting caller and other turns, one by one", async ({ world }) => {
      const isWaited = await startBothKinds(world);
      const order = (await claimOneByOne(world, 6)).map((turnId) => isWaited.get(turnId));
      expect(order.filter((waited, n) => waited === order[n - 1])).toEqual([]);
    });

    it("alternates between turns with a waiting caller and other turns, all at once", async ({ world }) => {
      const isWaited = await startBothKinds(world);
      const { turns } = await world.claim({ free: 4 });
      expect(turns.filter(({ turn }) => isWaited.get(turn.turnId))).toHaveLength(2);
    });

    it("increases the fence and the attempt with each claim of a turn", async ({ world }) => {
      const { turnId } = await world.start();
      const fences: number[] = [];
      for (const attempt of [1, 2, 3]) {
        const claimed = await world.claimNext();
        expect(claimed.turn).toMatchObject({ turnId, attempt });
        fences.push(claimed.claim.fence);
        await world.release(claimed);
      }
      expect(fences).toEqual([...new Set(fences)].sort((a, b) => a - b));
    });

    it("gives each attempt a new reply message", async ({ world }) => {
      await world.start();
      const first = await world.claimNext();
      await world.release(first);
      const second = await world.claimNext();
      expect(second.replyMessageId).not.toBe(first.replyMessageId);
      expect(second.replySeq).toBeGreaterThan(first.replySeq);
    });

    it("returns the time that the earlier attempts ran", async ({ world }) => {
      await world.start();
      for (const spentMs of [0, 400, 800]) {
        const claimed = await world.claimNext();
        expect(claimed.spentMs).toBe(spentMs);
        await world.store.releaseTurn(claimed.claim, {
          now: world.clock.now(),
          delayMs: 0,
          usage: used(1, 1, "echo", 400),
        });
      }
    });

    it("extends the leases of valid claims, and returns the claims that are not valid", async ({ world }) => {
      for (const session of ["chat:a", "chat:b", "chat:c"]) await world.start({ session });
      const { turns } = await world.claim();
      const [held, ended, released] = turns as [(typeof turns)[0], (typeof turns)[0], (typeof turns)[0]];
      await world.end(ended);
      await world.release(released);
      const others = { ...held.claim, node: "node_b" };
      const claims = [held.claim, ended.claim, released.claim, others];
      await world.clock.advance(LEASE_MS - 1);
      expect(await world.store.extendClaims(claims, LEASE_MS)).toEqual([ended.claim, released.claim, others]);
      await world.clock.advance(LEASE_MS - 1);
      await world.sweep();
      expect(await world.store.getTurn(held.turn.turnId)).toMatchObject({ status: "running", attempt: 1 });
    });
  });

  describe("releasing a turn", () => {
    it("queues the turn again, before the other turns of its session", async ({ world }) => {
      const first = await world.start();
      await world.start();
      expect(await world.release(await world.claimNext())).toBe(true);
      const turn = await world.store.getTurn(first.turnId);
      expectFields(turn, { status: "queued", attempt: 1, seq: first.seq, endedAt: undefined });
      expect((await world.entries()).at(-1)).toMatchObject({ name: "turn.queued", turnId: first.turnId });
      expect(await world.store.getSession("chat:a")).toMatchObject({ turnsQueued: 2 });
      const { turns } = await world.claim();
      expect(turns.map(({ turn: { turnId, attempt } }) => [turnId, attempt])).toEqual([[first.turnId, 2]]);
    });

    it("prevents claims of the turn and of those behind it until its delay has passed, and returns the time until then", async ({
      world,
    }) => {
      const first = await world.start();
      await world.start();
      await world.release(await world.claimNext(), 500);
      expect(await world.claim()).toEqual({ turns: [], nextDueInMs: 500 });
      await world.clock.advance(499);
      expect(await world.claim()).toEqual({ turns: [], nextDueInMs: 1 });
      await world.clock.advance(1);
      expect((await world.claimNext()).turn).toMatchObject({ turnId: first.turnId, attempt: 2 });
    });

    it("returns the time until the earliest of several delayed turns, in whatever order they were released", async ({
      world,
    }) => {
      for (const session of ["chat:a", "chat:b", "chat:c"]) await world.start({ session });
      const { turns } = await world.claim();
      for (const [n, delayMs] of [700, 300, 500].entries()) await world.release(turns[n] as (typeof turns)[0], delayMs);
      for (const [passes, session, next] of [
        [300, "chat:b", 200],
        [200, "chat:c", 200],
        [200, "chat:a", undefined],
      ] as const) {
        await world.clock.advance(passes);
        const claimed = await world.claim();
        expect(claimed.turns.map(({ turn }) => turn.sessionId)).toEqual([session]);
        expect(claimed.nextDueInMs).toBe(next);
      }
    });

    it("measures the delay by a monotonic clock", async ({ world }) => {
      await world.start();
      await world.release(await world.claimNext(), 500);
      world.clock.jump(3_600_000);
      expect((await world.claim()).turns).toEqual([]);
      world.clock.jump(-7_200_000);
      await world.clock.advance(500);
      expect((await world.claim()).turns).toHaveLength(1);
    });

    it("adds up the usage of all attempts of a turn", async ({ world }) => {
      const { turnId } = await world.start();
      await world.release(await world.claimNext(), 0, used(2, 0));
      expect((await world.store.getTurn(turnId))?.usage).toEqual({ input: 2, output: 0 });
      const second = await world.claimNext();
      expect(second.turn.usage).toEqual({ input: 2, output: 0 });
      await world.end(second, { usage: used(2, 5) });
      const usage = { input: 4, output: 5 };
      expect((await world.store.getTurn(turnId))?.usage).toEqual(usage);
      expect((await world.entries()).at(-1)).toMatchObject({ name: "turn.completed", usage });
      expect((await world.store.getSession("chat:a"))?.usage).toEqual(usage);
    });

    it("ends the turn as cancelled if a cancellation was requested while it ran", async ({ world }) => {
      const { turnId } = await world.start();
      const next = await world.start();
      const claimed = await world.claimNext();
      await world.store.cancelTurn(turnId, world.clock.now());
      await world.release(claimed, 500, used(1, 1));
      const turn = await world.store.getTurn(turnId);
      expect(turn).toMatchObject({ status: "cancelled", usage: { input: 1, output: 1 } });
      expect((await world.claimNext()).turn.turnId).toBe(next.turnId);
    });

    it("can be followed by a cancellation during the delay, and the next turn of the session continues", async ({
      world,
    }) => {
      const { turnId } = await world.start();
      const next = await world.start();
      await world.release(await world.claimNext(), 500);
      await world.store.cancelTurn(turnId, world.clock.now());
      expect((await world.claimNext()).turn.turnId).toBe(next.turnId);
      await world.clock.advance(500);
      expect((await world.claim()).turns).toEqual([]);
    });
  });
}

async function startBothKinds(world: World): Promise<Map<string, boolean>> {
  const isWaited = new Map<string, boolean>();
  for (const [n, waited] of [false, false, false, true, true, true].entries()) {
    isWaited.set((await world.start({ waited, session: `chat:${n}` })).turnId, waited);
    await world.clock.advance(1);
  }
  return isWaited;
}
