import { describe, expect } from "vitest";
import { claimCompaction, endCompaction } from "../compactions.ts";
import { eventOrder, queueEvent, takeEvents } from "../inbound.ts";
import { recountShares, sharesOf } from "../shares.ts";
import { testsOn } from "../tests-on.ts";
import { type Engine, refusal, type World, type WorldOptions } from "../world.ts";

const OTHERS = [
  { caller: "other" },
  { surface: "rpc", caller: "ci" },
  { surface: "hooks", caller: "ci" },
  { surface: "heartbeat", caller: "ci" },
] as const;

/** Two turns may wait. */
const QUEUE = { turns: 8, share: 0.25 };
/** Two messages of 5 000 bytes use up a share. */
const BYTES = { storeBytes: 48_000, share: 0.25 };
const TEXT = "x".repeat(5_000);

function started(world: World, options: WorldOptions): Promise<string> {
  return refusal(world.store.startTurn(world.order(options)));
}
function queued(world: World, options: Parameters<typeof eventOrder>[1]): Promise<string> {
  return refusal(world.store.queueEvent(eventOrder(world, options)));
}

/** Fills the share of the REST key ci with turns that have ended. */
async function fillStore(world: World): Promise<void> {
  for (const session of ["chat:a", "chat:b"]) {
    await world.start({ session, text: TEXT, limits: BYTES });
    await world.end(await world.claimNext());
  }
}

/** The bytes, turns and events of a REST key; undefined if it holds nothing. */
async function held(world: World, caller = "ci") {
  return (await sharesOf(world.store)).find((share) => share.surface === "rest" && share.caller === caller);
}

export function sharesTests(engine: Engine): void {
  const it = testsOn(engine);
  describe("the share of a caller", () => {
    it("refuses a turn when the caller's waiting turns fill its share of the queue", async ({ world }) => {
      for (const session of ["chat:a", "chat:b"]) await world.start({ session, limits: QUEUE });
      const before = await world.everything(["chat:a", "chat:b", "chat:c"]);
      const call = world.store.startTurn(world.order({ session: "chat:c", limits: QUEUE }));
      await expect(call).rejects.toMatchObject({
        name: "share-busy",
        detail:
          "limits.share is reached: 2 turns of the REST key ci are waiting. A new turn is accepted when one of them starts or is cancelled.",
        extra: { retryAfterMs: expect.any(Number) },
      });
      expect(await world.everything(["chat:a", "chat:b", "chat:c"])).toEqual(before);
      for (const other of OTHERS) expect(await started(world, { ...other, limits: QUEUE })).toBe("not refused");
    });

    it("accepts a turn again when one of the caller's turns has started or was cancelled", async ({ world }) => {
      const first = await world.start({ session: "chat:a", limits: QUEUE });
      await world.start({ session: "chat:b", limits: QUEUE });
      await world.store.cancelTurn(first.turnId, world.clock.now());
      expect(await started(world, { session: "chat:c", limits: QUEUE })).toBe("not refused");
      expect(await started(world, { session: "chat:d", limits: QUEUE })).toBe("share-busy");
      const claimed = await world.claimNext();
      expect(await started(world, { session: "chat:d", limits: QUEUE })).toBe("not refused");
      await world.release(claimed);
      expect(await held(world)).toMatchObject({ turns: 3 });
    });

    it("lets at least one turn and one event of a caller wait", async ({ world }) => {
      const limits = { turns: 2, events: 2, share: 0.01 };
      expect(await started(world, { limits })).toBe("not refused");
      expect(await started(world, { limits })).toBe("share-busy");
      expect(await queued(world, { limits })).toBe("not refused");
      expect(await queued(world, { limits })).toBe("share-busy");
    });

    it("refuses a turn if the caller's turns hold its share of the store, with no time of a retry", async ({
      world,
    }) => {
      await fillStore(world);
      const before = await world.everything(["chat:a", "chat:b", "chat:c"]);
      const { bytes } = (await held(world)) ?? {};
      const call = world.store.startTurn(world.order({ session: "chat:c", limits: BYTES }));
      await expect(call).rejects.toMatchObject({
        name: "share-full",
        detail: `limits.share is reached: the turns and events of the REST key ci hold ${bytes} bytes. Delete sessions with its turns, or raise the limit.`,
        extra: {},
      });
      expect(await world.everything(["chat:a", "chat:b", "chat:c"])).toEqual(before);
      for (const other of OTHERS) expect(await started(world, { ...other, limits: BYTES })).toBe("not refused");
    });

    it("counts the turns of a caller in the sessions of other callers for that caller", async ({ world }) => {
      await world.start({ caller: "other" });
      await world.start({ text: TEXT });
      await world.end(await world.claimNext());
      await world.end(await world.claimNext(), { reply: TEXT });
      expect(await held(world, "other")).toMatchObject({ turns: 0, bytes: 2_007 });
      expect(await held(world)).toMatchObject({ turns: 0, bytes: 11_200 });
      expect(await sharesOf(world.store)).toEqual(await recountShares(world.store));
    });

    it("accepts a turn again after sessions with the caller's turns were deleted", async ({ world }) => {
      await fillStore(world);
      expect(await started(world, { session: "chat:c", limits: BYTES })).toBe("share-full");
      await world.store.deleteSession("chat:a", world.clock.now());
      expect(await started(world, { session: "chat:c", limits: BYTES })).toBe("not refused");
      for (const session of ["chat:b", "chat:c"]) await world.store.deleteSession(session, world.clock.now());
      await world.sweep();
      expect(await sharesOf(world.store)).toEqual([]);
    });

    it("accepts a turn again after the retention of the caller's sessions", async ({ world }) => {
      await fillStore(world);
      await world.clock.advance(10_000);
      await world.sweep({ sessionsBefore: world.clock.now() - 1 });
      expect(await sharesOf(world.store)).toEqual([]);
      expect(await started(world, { session: "chat:a", limits: BYTES })).toBe("not refused");
    });

    it("accepts a turn again after compacted turns are past their retention", async ({ world }) => {
      for (let n = 0; n < 2; n++) {
        await world.start({ text: TEXT, limits: BYTES });
        await world.end(await world.claimNext());
      }
      expect(await started(world, { limits: BYTES })).toBe("share-full");
      const { lastSeq = 0 } = (await world.store.getSession("chat:a")) ?? {};
      const [before, after] = [
        { messages: 4, tokens: 0 },
        { messages: 0, tokens: 0 },
      ];
      const of = { summary: "short", outside: false, through: lastSeq, except: [], before, after, freedBytes: 1 };
      await endCompaction(world, await claimCompaction(world), of);
      await world.clock.advance(10_000);
      await world.start({ session: "chat:a", caller: "other" });
      await world.sweep({ sessionsBefore: world.clock.now() - 1 });
      expect(await held(world)).toBeUndefined();
      expect(await started(world, { limits: BYTES })).toBe("not refused");
    });

    it("counts a turn that was running when its session was deleted until it is erased", async ({ world }) => {
      await world.start();
      const claimed = await world.claimNext();
      await world.store.deleteSession("chat:a", world.clock.now());
      await world.end(claimed);
      await world.sweep();
      expect(await sharesOf(world.store)).toEqual([]);
    });

    it("applies to no caller if it is 1", async ({ world }) => {
      const limits = { turns: 2, storeBytes: 48_000, share: 1 };
      await world.start({ session: "chat:a", text: TEXT.repeat(4), limits });
      expect(await started(world, { session: "chat:b", limits })).toBe("not refused");
      expect(await started(world, { session: "chat:c", limits })).toBe("gateway-busy");
    });

    it("answers a repeated request although the share is used up by then", async ({ world }) => {
      const first = await world.start({ key: "k", limits: QUEUE });
      const again = await world.store.startTurn(world.order({ key: "k", limits: { turns: 8, share: 0.01 } }));
      expect(again).toMatchObject({ replayed: true, turn: { turnId: first.turnId } });
    });

    it("refuses an event when its sender's waiting events fill its share", async ({ world }) => {
      const limits = { events: 8, share: 0.25 };
      const ids: string[] = [];
      for (let n = 0; n < 2; n++) ids.push((await queueEvent(world, { limits })).eventId);
      await expect(world.store.queueEvent(eventOrder(world, { limits }))).rejects.toMatchObject({
        name: "share-busy",
        detail:
          "limits.share is reached: 2 events of the webhook source shared are waiting. A new event is accepted when an agent has handled one of them.",
      });
      expect(await queued(world, { caller: "other", limits })).toBe("not refused");
      const claimed = await takeEvents(world, ids.slice(0, 1));
      expect(await queued(world, { limits })).toBe("share-busy");
      await world.end(claimed);
      expect(await queued(world, { limits })).toBe("not refused");
    });

    it("counts the bytes of events until they are erased, together with those of turns", async ({ world }) => {
      const { eventId } = await queueEvent(world, { text: TEXT });
      await world.start({ surface: "hooks", caller: "shared", text: TEXT });
      await world.end(await world.claimNext());
      expect(await queued(world, { limits: { storeBytes: 40_000, share: 0.25 } })).toBe("share-full");
      await world.end(await takeEvents(world, [eventId]));
      expect(await queued(world, { limits: { storeBytes: 40_000, share: 0.25 } })).toBe("share-full");
      await world.clock.advance(10_000);
      await world.sweep({ eventsBefore: world.clock.now() });
      expect(await queued(world, { limits: { storeBytes: 40_000, share: 0.25 } })).toBe("not refused");
      expect(await sharesOf(world.store)).toEqual(await recountShares(world.store));
    });
  });
}
