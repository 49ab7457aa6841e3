import { describe, expect } from "vitest";
import { claimCompaction, startCompaction } from "../compactions.ts";
import { age, compact, endCompactionWith, isKept, SESSION, seqs, talk, texts } from "../journals.ts";
import { testsOn } from "../tests-on.ts";
import { deliveryOf, type Engine, refusal } from "../world.ts";

export function ageingTests(engine: Engine): void {
  const it = testsOn(engine);
  describe("the head of a journal", () => {
    it("is erased if it is compacted and older than the retention, and the rest does not change", async ({ world }) => {
      const turnIds = await talk(world, ["one", "two", "three"]);
      await compact(world, ["three", "re three"]);
      const before = await world.store.getSession(SESSION);
      const kept = (await world.entries()).filter(({ seq }) => seq > 12);
      expect(before).toMatchObject({ firstSeq: 1, lastSeq: 19, messageCount: 6 });
      world.told.length = 0;
      await world.sweep({ sessionsBefore: world.clock.now() - 1 });
      expect(await world.store.getSession(SESSION)).toEqual(before);
      await age(world);
      expect((await world.entries()).slice(0, kept.length)).toEqual(kept);
      expect(await isKept(world, turnIds)).toEqual([false, false, true]);
      const { usage, summary } = { usage: before?.usage, summary: await world.store.readSummary(SESSION) };
      const after = { firstSeq: 13, lastSeq: 21, messageCount: 7, usage, ordinal: before?.ordinal };
      expect(await world.store.getSession(SESSION)).toMatchObject(after);
      expect((await world.store.listSessions({ limit: 1 })).items[0]).toMatchObject(after);
      expect(summary?.text).toBe("in short");
      expect(await texts(world, false)).toEqual(["later", "re three", "three"]);
      expect(await texts(world, true)).toEqual(["later", "re three", "three"]);
      expect(world.told.every((what) => what.kind === "turn" || what.kind === "entries")).toBe(true);
    });

    it("leaves the sequence numbers unchanged, and any read starts at the first stored entry", async ({ world }) => {
      await talk(world, ["one", "two"]);
      await compact(world, ["two", "re two"]);
      await age(world);
      const read = async (after: number, limit = 100) =>
        (await world.store.readEntries(SESSION, { after, limit })).map(({ seq }) => seq);
      expect(await read(0)).toEqual([7, 8, 9, 10, 11, 12, 13, 14, 15]);
      expect(await read(3, 2)).toEqual([7, 8]);
      expect(await read(6)).toEqual(await read(0));
      expect(await read(7, 1)).toEqual([8]);
      expect(await read(15)).toEqual([]);
      await world.end(await world.claimNext());
      expect((await seqs(world)).at(-1)).toBe(19);
      const older = await world.store.readMessages(SESSION, { before: 7, limit: 9, includeCompacted: true });
      expect(older).toEqual([]);
    });

    it("is not erased without a summary that covers it, however old it is", async ({ world }) => {
      const turnIds = await talk(world, ["one", "two"]);
      await age(world);
      expect(await world.store.getSession(SESSION)).toMatchObject({ firstSeq: 1 });
      expect(await isKept(world, turnIds)).toEqual([true, true]);
    });

    it("is also erased if it does not start with a message", async ({ world }) => {
      await talk(world, ["one"]);
      const ended = world.clock.now();
      await world.clock.advance(1_000);
      await compact(world, []);
      await world.sweep({ sessionsBefore: ended });
      expect(await seqs(world)).toEqual([7]);
      await world.clock.advance(1_000);
      await world.start({ session: SESSION });
      await world.sweep({ sessionsBefore: world.clock.now() - 1 });
      expect((await seqs(world))[0]).toBe(8);
    });

    it("ends at the first recent entry if all entries are compacted", async ({ world }) => {
      const turnIds = await talk(world, ["one", "two"]);
      const sessionsBefore = world.clock.now();
      await world.clock.advance(1);
      await compact(world);
      await world.sweep({ sessionsBefore });
      expect(await isKept(world, turnIds)).toEqual([false, false]);
      expect(await world.names()).toEqual(["session.compacted"]);
      expect(await world.store.getSession(SESSION)).toMatchObject({ firstSeq: 13, lastSeq: 13, messageCount: 4 });
      expect(await texts(world, true)).toEqual([]);
      await talk(world, ["three"]);
      expect(await texts(world, false)).toEqual(["re three", "three"]);
    });

    it("includes the whole journal if only a waiting compaction holds the session", async ({ world }) => {
      await talk(world, ["one"]);
      await compact(world);
      await startCompaction(world, { leaseMs: 1e6 });
      await world.sweep({ sessionsBefore: world.clock.now() });
      expect(await world.store.getSession(SESSION)).toMatchObject({ firstSeq: 8, lastSeq: 7 });
      expect(await world.entries()).toEqual([]);
      expect((await world.start()).seq).toBe(9);
      expect(await seqs(world)).toEqual([8, 9]);
    });

    it("does not exist any more for a repeated key and for its delivery, as with a deleted session", async ({
      world,
    }) => {
      const { turnId } = await world.start({ key: "k1", delivery: deliveryOf("dlv_1", "secret") });
      await world.end(await world.claimNext());
      await compact(world);
      await age(world);
      expect(await refusal(world.start({ key: "k1" }))).toBe("turn-not-found");
      expect(await refusal(world.store.findReplay({ key: "k1", hash: "hash" }, world.clock.now()))).toBe(
        "turn-not-found",
      );
      expect(await refusal(world.start({ key: "k1", hash: "other" }))).toBe("idempotency-mismatch");
      const delivery = { outcome: "gone", body: undefined, turnId };
      expect(await world.store.getDelivery("dlv_1")).toMatchObject(delivery);
      expect((await world.store.listDeliveries({ outcome: "gone", limit: 9 })).items).toHaveLength(1);
    });

    it("has the retention of webhooks in a webhook session", async ({ world }) => {
      for (const session of [SESSION, "webhook:a"]) {
        await talk(world, ["one"], { session });
        await compact(world, [], session);
      }
      const at = world.clock.now();
      await world.clock.advance(1_000);
      for (const session of [SESSION, "webhook:a"]) await world.start({ session });
      const firsts = async () =>
        (await Promise.all([SESSION, "webhook:a"].map((id) => world.store.getSession(id)))).map((of) => of?.firstSeq);
      await world.sweep({ webhookSessionsBefore: at });
      expect(await firsts()).toEqual([1, 8]);
      await world.sweep({ sessionsBefore: at });
      expect(await firsts()).toEqual([8, 8]);
    });

    it("is erased completely if it is long, also if the session grows meanwhile", async ({ world }) => {
      const count = 300;
      const turnIds = await talk(
        world,
        Array.from({ length: count }, (_, n) => `${n}`),
      );
      await compact(world, [`${count - 1}`, `re ${count - 1}`]);
      const sessionsBefore = world.clock.now();
      await world.clock.advance(1_000);
      await talk(world, ["later"]);
      await Promise.all([world.sweep({ sessionsBefore }), talk(world, ["meanwhile 1", "meanwhile 2"])]);
      expect((await world.store.getSession(SESSION))?.firstSeq).toBe((count - 1) * 6 + 1);
      expect(await isKept(world, turnIds.slice(-2))).toEqual([false, true]);
      const from = (count - 1) * 6 + 1;
      const { lastSeq = 0 } = (await world.store.getSession(SESSION)) ?? {};
      expect(await seqs(world)).toEqual(Array.from({ length: lastSeq - from + 1 }, (_, n) => from + n));
    });

    it("is erased repeatedly in a session that is always in use; the rest is deleted with the session", async ({
      world,
    }) => {
      const kept: string[] = [];
      for (let round = 0; round < 5; round++) {
        const [turnId = ""] = (await talk(world, [`${round} a`, `${round} b`])).slice(-1);
        await compact(world, [`${round} b`, `re ${round} b`]);
        await world.sweep({ sessionsBefore: world.clock.now() - 1 });
        await world.clock.advance(1_000);
        kept.push(turnId);
      }
      expect(await texts(world, false)).toEqual(["re 4 b", "4 b"]);
      expect(await isKept(world, kept)).toEqual([false, false, false, false, true]);
      const { lastSeq = 0, firstSeq = 0 } = (await world.store.getSession(SESSION)) ?? {};
      expect(lastSeq).toBe(5 * 13);
      expect(await seqs(world)).toEqual(Array.from({ length: lastSeq - firstSeq + 1 }, (_, n) => firstSeq + n));
      await world.store.deleteSession(SESSION, world.clock.now());
      expect(await isKept(world, kept)).toEqual([false, false, false, false, false]);
      const { seq } = await world.start();
      expect(seq).toBe(2);
      expect(await world.store.getSession(SESSION)).toMatchObject({ firstSeq: 1 });
    });
  });

  describe("the head of a journal, by its turns", () => {
    it("is not erased from the first turn with a message that is not compacted", async ({ world }) => {
      const turnIds = await talk(world, ["one", "two", "three"]);
      await compact(world, ["re two"]);
      await age(world);
      expect(await isKept(world, turnIds)).toEqual([false, true, true]);
      expect((await seqs(world))[0]).toBe(7);
      expect(await texts(world, false)).toEqual(["later", "re two"]);
    });

    it("is not erased from the first turn that ended later", async ({ world }) => {
      const first = await talk(world, ["one"]);
      const sessionsBefore = world.clock.now();
      const { turnId } = await world.start();
      const claimed = await world.claimNext();
      await world.clock.advance(1);
      await world.end(claimed);
      await compact(world);
      await world.sweep({ sessionsBefore });
      expect(await isKept(world, [...first, turnId])).toEqual([false, true]);
      expect((await seqs(world))[0]).toBe(7);
      await world.sweep({ sessionsBefore: sessionsBefore + 1 });
      expect(await world.store.getSession(SESSION)).toBeUndefined();
    });

    for (const how of ["queued", "running", "released"]) {
      it(`is not erased from a turn that is ${how}`, async ({ world }) => {
        const [ended = ""] = await talk(world, ["one"]);
        const claimed = await claimCompaction(world, { leaseMs: 1e6 });
        const { turnId } = await world.start();
        await endCompactionWith(world, claimed);
        if (how !== "queued") {
          const claimed = await world.claimNext();
          if (how === "released") await world.release(claimed, 60_000);
        }
        await world.sweep({ sessionsBefore: world.clock.now() });
        expect(await isKept(world, [ended, turnId])).toEqual([false, true]);
        expect((await seqs(world))[0]).toBe(7);
      });
    }

    it("is not erased from a turn whose announcement is not finished", async ({ world }) => {
      const [first = ""] = await talk(world, ["one"]);
      const [announced = ""] = await talk(world, ["two"], { announce: { channel: "ops", hops: 0 } });
      await compact(world);
      await age(world);
      expect(await isKept(world, [first, announced])).toEqual([false, true]);
      const request = { node: "node_a", leaseMs: 1e6, free: {}, others: { free: 1, before: 1e15 } };
      const { claimed } = await world.store.claimOutgoing(request);
      const step = { at: world.clock.now(), name: "announcement.sent", detail: undefined };
      for (const { claim } of claimed) {
        await world.store.endOutgoing(claim, { state: "delivered", reason: undefined, step });
      }
      await world.sweep({ sessionsBefore: world.clock.now() - 1 });
      expect(await isKept(world, [announced])).toEqual([false]);
    });

    it("deletes a turn with its first entry, and leaves the turn's later entries to the next sweep", async ({
      world,
    }) => {
      const { turnId: first } = await world.start({ text: "one", key: "k1", delivery: deliveryOf("dlv_1", "secret") });
      const claimed = await world.claimNext();
      const { turnId: second } = await world.start({ text: "two" });
      await world.end(claimed, { reply: "re one" });
      await world.end(await world.claimNext(), { reply: "re two" });
      await compact(world, ["two", "re two"]);
      await age(world);
      expect(await isKept(world, [first, second])).toEqual([false, true]);
      expect((await world.entries()).slice(0, 4).map(({ name, turnId }) => [name, turnId])).toEqual([
        ["message.created", second],
        ["turn.queued", second],
        ["message.completed", first],
        ["turn.completed", first],
      ]);
      expect(await refusal(world.start({ key: "k1" }))).toBe("turn-not-found");
      expect(await refusal(world.store.cancelTurn(first, world.clock.now()))).toBe("turn-not-found");
      expect(await texts(world, true)).toEqual(["later", "re two", "re one", "two"]);
      await world.end(await world.claimNext(), { reply: "re later" });
      await compact(world, ["later", "re later"]);
      await world.sweep({ sessionsBefore: world.clock.now() - 1 });
      expect(await isKept(world, [second])).toEqual([false]);
      expect(await texts(world, true)).toEqual(["re later", "later"]);
    });
  });
}
