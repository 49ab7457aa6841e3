import { isDeepStrictEqual } from "node:util";
import { describe, expect } from "vitest";
import type { ClaimedTurn, DeliveryOutcome, Entry, SessionRef } from "#store/store.ts";
import { hookOf, record } from "../deliveries.ts";
import { failEvent, queueEvent, takeEvents } from "../inbound.ts";
import { testsOn } from "../tests-on.ts";
import { type Engine, LEASE_MS, silent, type World } from "../world.ts";

function toldOf(world: World, sessionId: string): Entry[] {
  return world.told.flatMap((what) => (what.kind === "entries" && what.sessionId === sessionId ? what.entries : []));
}

/** Does something that may make a turn claimable and waits until the watcher is notified of one. */
async function expectWork(world: World, act: () => Promise<unknown>): Promise<void> {
  world.told.length = 0;
  await act();
  await world.hears(({ kind }) => kind === "turn");
}

/** A field that is undefined may be missing. */
function withoutGaps(entry: Entry | undefined): unknown {
  return JSON.parse(JSON.stringify(entry));
}

export function watchingTests(engine: Engine): void {
  const it = testsOn(engine);
  describe("watching", () => {
    it("notifies of each entry once, in order, in every session", async ({ world }) => {
      for (let n = 0; n < 3; n++) for (const session of ["chat:a", "chat:b"]) await world.start({ session });
      await world.end(await world.claimNext());
      await world.release(await world.claimNext());
      await world.end(await world.claimNext(), { status: "failed", reply: "half" });
      const { turnId } = await world.start();
      await world.store.cancelTurn(turnId, world.clock.now());
      await world.store.failQueuedTurns("main", { name: "agent-removed", detail: "" }, world.clock.now());
      for (const session of ["chat:a", "chat:b"]) {
        const kept = await world.entries(session);
        const lastSeq = kept.length;
        await world.hears((what) => what.kind === "entries" && what.entries.at(-1)?.seq === lastSeq);
        expect(toldOf(world, session)).toEqual(kept);
      }
    });

    it("notifies after the change is stored: a watcher can read it", async ({ world }) => {
      const { store } = world;
      const reads: Promise<boolean>[] = [];
      store.watch({
        ...silent,
        entries: ({ sessionId }, entries) => {
          const read = async ({ seq }: Entry) => (await store.readEntries(sessionId, { after: seq - 1, limit: 1 }))[0];
          reads.push(
            ...entries.map(async (entry) => isDeepStrictEqual(withoutGaps(await read(entry)), withoutGaps(entry))),
          );
        },
        sessionDeleted: ({ sessionId }) => {
          reads.push(store.getSession(sessionId).then((session) => session === undefined));
        },
        cancel: (turnId) => {
          reads.push(store.getTurn(turnId).then((turn) => turn?.status === "running"));
        },
      });
      const { turnId } = await world.start();
      const claimed = await world.claimNext();
      await store.cancelTurn(turnId, world.clock.now());
      // The turn that should be running ends next.
      await Promise.all(reads);
      await world.end(claimed, { reply: "hi" });
      await world.hears((what) => what.kind === "entries" && what.entries.at(-1)?.name === "turn.completed");
      const results = await Promise.all(reads);
      expect(results).toHaveLength(7);
      expect(results).not.toContain(false);
    });

    it("names the session: its agent, and which of several sessions with the same id", async ({ world }) => {
      const told: SessionRef[] = [];
      const keep = ({ sessionId, agent, ordinal, contextBytes }: SessionRef) =>
        told.push({ sessionId, agent, ordinal, contextBytes });
      world.store.watch({
        ...silent,
        entries: keep,
        sessionDeleted: keep,
      });
      await world.start({ text: "four" });
      const first = await world.store.getSession("chat:a");
      await world.store.deleteSession("chat:a", world.clock.now());
      await world.hears(({ kind }) => kind === "deleted");
      await world.start({ agent: "other" });
      const again = await world.store.getSession("chat:a");
      await world.hears((what) => what.kind === "entries" && told.at(-1)?.agent === "other");
      const ordinal = first?.ordinal ?? Infinity;
      expect(told[0]).toEqual({ sessionId: "chat:a", agent: "main", ordinal, contextBytes: 4 });
      expect(told.filter((session) => session.ordinal === ordinal)).toHaveLength(told.length - 1);
      expect(told.at(-1)?.ordinal).toBe(again?.ordinal);
      expect(again?.ordinal).toBeGreaterThan(ordinal);
    });

    it("notifies each time a turn becomes ready to be claimed", async ({ world }) => {
      await expectWork(world, () => world.start());
      await world.start();
      const first = await world.claimNext();
      await expectWork(world, () => world.end(first));
      const second = await world.claimNext();
      await expectWork(world, () => world.release(second));
      const head = await world.start({ session: "chat:b" });
      await world.start({ session: "chat:b" });
      await expectWork(world, () => world.store.cancelTurn(head.turnId, world.clock.now()));
      await world.claim();
      await world.clock.advance(LEASE_MS);
      await expectWork(world, () => world.sweep());
    });

    it("notifies of each running turn that should end, and of no queued one", async ({ world }) => {
      const running = await world.start();
      await world.claimNext();
      const queued = await world.start();
      for (const { turnId } of [queued, running]) await world.store.cancelTurn(turnId, world.clock.now());
      await world.hears(({ kind }) => kind === "cancel");
      expect(world.told.filter(({ kind }) => kind === "cancel")).toEqual([{ kind: "cancel", turnId: running.turnId }]);
    });

    it("reports each delivery that is recorded, and each other outcome, once it can be read", async ({ world }) => {
      const { store, clock } = world;
      let deliveryId = "";
      const newHook = (options = {}) => {
        deliveryId = world.newId("dlv");
        return hookOf(deliveryId, options);
      };
      const expectNews = async (
        kind: "recorded" | "outcome",
        outcome: DeliveryOutcome,
        act: () => Promise<unknown>,
      ) => {
        world.told.length = 0;
        await act();
        await world.hears((news) => news.kind === kind && news.deliveryId === deliveryId);
        expect(await store.readDeliveries(["dlv_unknown", deliveryId])).toMatchObject([{ deliveryId, outcome }]);
      };
      await expectNews("recorded", "unmatched", () => record(world, newHook({ answer: "unmatched" })));
      const startOne = (session: string) => world.start({ session, delivery: newHook() });
      const cancel = async () => store.cancelTurn((await world.entries("chat:b"))[0]?.turnId ?? "", clock.now());
      const requeue = { now: clock.now(), beatNow: false, streamKeep: 10 };
      let eventId = "";
      let claimed: ClaimedTurn | undefined;
      const claim = async () => {
        claimed = await world.claimNext();
      };

      await expectNews("recorded", "queued", () => startOne("chat:a"));
      await expectNews("outcome", "running", claim);
      await expectNews("outcome", "queued", () => world.release(claimed as ClaimedTurn));
      await expectNews("outcome", "running", claim);
      await clock.advance(LEASE_MS);
      await expectNews("outcome", "queued", () => world.sweep());
      await expectNews("outcome", "running", claim);
      await expectNews("outcome", "completed", () => world.end(claimed as ClaimedTurn));
      await expectNews("recorded", "queued", () => startOne("chat:b"));
      await expectNews("outcome", "cancelled", cancel);
      await expectNews("recorded", "queued", () => startOne("chat:c"));
      const error = { name: "agent-removed", detail: "" } as const;
      await expectNews("outcome", "failed", () => store.failQueuedTurns("main", error, clock.now()));
      await expectNews("recorded", "queued", () => startOne("chat:d"));
      await expectNews("outcome", "gone", () => store.deleteSession("chat:d", clock.now()));
      await expectNews("recorded", "queued", () => startOne("chat:e"));
      await expectNews("outcome", "running", claim);
      await expectNews("outcome", "gone", () => store.deleteSession("chat:e", clock.now()));

      await expectNews("recorded", "queued", async () => {
        ({ eventId } = await queueEvent(world, { delivery: newHook() }));
      });
      await expectNews("outcome", "dead", () => failEvent(world, eventId, 3));
      await expectNews("outcome", "queued", () => store.requeueEvent(eventId, requeue));
      await expectNews("outcome", "handled", async () => world.end(await takeEvents(world, [eventId])));
    });

    it("shows several deliveries at once, in the order of their ids, as the list does", async ({ world }) => {
      const { store } = world;
      for (let n = 1; n <= 3; n++) await record(world, hookOf(`dlv_${n}`, { answer: "unmatched" }));
      await world.start({ delivery: hookOf("dlv_4") });
      const found = await store.readDeliveries(["dlv_4", "dlv_1", "dlv_unknown", "dlv_3"]);
      const { items } = await store.listDeliveries({ limit: 10 });
      expect(found).toEqual([items[0], items[3], items[1]]);
      expect(await store.readDeliveries([])).toEqual([]);
    });

    it("notifies every watcher until it is removed", async ({ world }) => {
      const heard: string[] = [];
      const unwatch = world.store.watch({
        ...silent,
        entries: ({ sessionId }) => heard.push(sessionId),
      });
      const isToldOf = (session: string) =>
        world.hears((what) => what.kind === "entries" && what.sessionId === session);
      await world.start({ session: "chat:a" });
      await isToldOf("chat:a");
      unwatch();
      await world.start({ session: "chat:b" });
      await isToldOf("chat:b");
      expect(heard).toEqual(["chat:a"]);
    });
  });
}
