import { describe, expect } from "vitest";
import type { Store } from "#store/store.ts";
import { eventOrder, queueEvent, startBeat, waiting } from "../inbound.ts";
import { testsOn } from "../tests-on.ts";
import { deliveryOf, type Engine, LEASE_MS, refusal, times, type World } from "../world.ts";

export function overlappingTests(engine: Engine): void {
  const it = testsOn(engine);
  const expectStats = async ({ store }: World, stats: Partial<ReturnType<Store["stats"]>>): Promise<void> => {
    if (engine.countsLater) await expect.poll(() => store.stats()).toMatchObject(stats);
    else expect(store.stats()).toMatchObject(stats);
  };

  describe("overlapping calls", () => {
    it("start one turn for any number of calls with the same key", async ({ world }) => {
      const orders = times(20, (n) => world.order({ key: "k", session: `chat:${n}` }));
      const starts = await Promise.all(orders.map((order) => world.store.startTurn(order)));
      expect(starts.filter(({ replayed }) => !replayed)).toHaveLength(1);
      expect(new Set(starts.map(({ turn }) => turn.turnId)).size).toBe(1);
      await expectStats(world, { sessions: 1, turnsQueued: 1 });
    });

    it("number the entries without a gap, and notify watchers of them in order", async ({ world }) => {
      const turns = await Promise.all(times(50, () => world.start()));
      const entries = await world.entries();
      expect(entries.map(({ seq }) => seq)).toEqual(times(100, (n) => n + 1));
      for (const { turnId, seq } of turns) {
        expect(entries[seq - 1]).toMatchObject({ name: "turn.queued", turnId });
        expect(entries[seq - 2]).toMatchObject({ name: "message.created", turnId });
      }
      await world.hears((what) => what.kind === "entries" && what.entries.at(-1)?.seq === 100);
      const told = world.told.flatMap((what) => (what.kind === "entries" ? what.entries : []));
      expect(told.map(({ seq }) => seq)).toEqual(times(100, (n) => n + 1));
    });

    it("exceed no limit", async ({ world }) => {
      const limits = { turnsPerSession: 5 };
      const outcomes = await Promise.all(times(20, () => refusal(world.store.startTurn(world.order({ limits })))));
      expect(outcomes.filter((outcome) => outcome === "not refused")).toHaveLength(5);
      expect(outcomes.filter((outcome) => outcome === "session-busy")).toHaveLength(15);
      expect((await world.store.getSession("chat:a"))?.turnsQueued).toBe(5);
    });

    it("give each turn to one of several concurrent claims, and never two turns of a session", async ({ world }) => {
      for (let n = 0; n < 40; n++) await world.start({ session: `chat:${n % 20}` });
      const claims = await Promise.all(times(8, (n) => world.claim({ free: 5, node: `node_${n}` })));
      const sessions = claims.flatMap(({ turns }) => turns.map(({ turn }) => turn.sessionId));
      expect(new Set(sessions).size).toBe(sessions.length);
      expect(sessions).toHaveLength(20);
    });

    it("store one end of a turn if several arrive at once", async ({ world }) => {
      const { turnId } = await world.start();
      const claimed = await world.claimNext();
      const kept = await Promise.all(times(10, (n) => world.end(claimed, { reply: `reply ${n}` })));
      expect(kept.filter(Boolean)).toHaveLength(1);
      expect((await world.store.getTurn(turnId))?.reply).toBe(`reply ${kept.indexOf(true)}`);
      expect((await world.names()).filter((name) => name === "turn.completed")).toHaveLength(1);
    });

    it("end a turn once when a cancellation, a claim and a deletion overlap", async ({ world }) => {
      for (let n = 0; n < 20; n++) {
        const session = `chat:${n}`;
        const { turnId } = await world.start({ session });
        const now = world.clock.now();
        const cancelled = refusal(world.store.cancelTurn(turnId, now));
        const deleted = n % 2 ? world.store.deleteSession(session, now) : undefined;
        const [{ turns }] = await Promise.all([world.claim(), cancelled, deleted]);
        for (const claimed of turns) await world.end(claimed, { status: "cancelled" });
        const ends = (await world.names(session)).filter((name) => name === "turn.cancelled");
        expect(ends).toHaveLength(deleted ? 0 : 1);
        expect(await world.store.getTurn(turnId)).toEqual(
          deleted ? undefined : expect.objectContaining({ status: "cancelled" }),
        );
      }
      await expectStats(world, { turnsQueued: 0, turnsRunning: 0 });
    });

    it("show each call the result of every earlier call", async ({ world }) => {
      for (let n = 1; n <= 10; n++) {
        const { turnId } = await world.start();
        const reads = await Promise.all([
          world.store.getTurn(turnId),
          world.store.getSession("chat:a"),
          world.store.readEntries("chat:a", { after: 0, limit: 1_000 }),
          world.store.listSessions({ limit: 1 }),
        ]);
        expect(reads[0]?.status).toBe("queued");
        expect([reads[1]?.lastSeq, reads[2].length, reads[3].items[0]?.lastSeq]).toEqual([2 * n, 2 * n, 2 * n]);
      }
    });

    it("queue one event for any number of calls with the same key", async ({ world }) => {
      const orders = times(20, (n) => eventOrder(world, { key: "k", delivery: deliveryOf(`dlv_${n}`) }));
      const answers = await Promise.all(orders.map((order) => world.store.queueEvent(order)));
      expect(new Set(answers.map(({ event }) => event.eventId)).size).toBe(1);
      expect(answers.filter(({ replayed }) => !replayed)).toHaveLength(1);
      expect(await waiting(world)).toHaveLength(1);
      expect((await world.store.listDeliveries({ limit: 100 })).items).toHaveLength(1);
    });

    it("do not exceed the limit of events", async ({ world }) => {
      const outcomes = await Promise.all(times(20, () => refusal(queueEvent(world, { limits: { events: 5 } }))));
      expect(outcomes.filter((outcome) => outcome === "gateway-busy")).toHaveLength(15);
      await expectStats(world, { eventsQueued: 5 });
    });

    it("start one turn of a beat for any number of concurrent calls", async ({ world }) => {
      await queueEvent(world, { beatNow: true });
      const outcomesOf = async () => {
        const steps = await Promise.all(times(8, (n) => startBeat(world, { node: `node_${n}` })));
        return steps.map(({ outcome }) => outcome).filter((outcome) => outcome !== "not-due");
      };
      expect(await outcomesOf()).toEqual(["started"]);
      await expectStats(world, { turnsRunning: 1 });
      await queueEvent(world, { beatNow: true });
      expect(await outcomesOf()).toEqual([]);
    });

    it("give each announcement to one of several concurrent claims", async ({ world }) => {
      const started = await Promise.all(
        times(20, (n) => world.start({ session: `chat:${n}`, announce: { channel: "ops", hops: 0 } })),
      );
      for (const _ of started) await world.end(await world.claimNext());
      const claim = (n: number) =>
        world.store.claimOutgoing({
          node: `node_${n}`,
          leaseMs: LEASE_MS,
          free: {},
          others: { free: 5, before: 1e15 },
        });
      const answers = await Promise.all(times(8, claim));
      const claimed = answers.flatMap((answer) => answer.claimed.map(({ message }) => message.id));
      expect(claimed.sort()).toEqual(started.map(({ turnId }) => turnId).sort());
    });
  });
}
