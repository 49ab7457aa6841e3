import { describe, expect } from "vitest";
import { age, compact, endCompaction, isKept, queueCompaction, SESSION, seqs, talk, texts } from "../journals.ts";
import { testsOn } from "../tests-on.ts";
import { deliveryOf, type Engine, refusal } from "../world.ts";

export const ageingTurnsTests = (engine: Engine): void => {
  const it = testsOn(engine);
  describe("the head of a journal, by its turns", () => {
    it("stays from the first turn on of which a message is not compacted", async ({ world }) => {
      const turnIds = await talk(world, ["one", "two", "three"]);
      await compact(world, ["re two"]);
      await age(world);
      expect(await isKept(world, turnIds)).toEqual([false, true, true]);
      expect((await seqs(world))[0]).toBe(7);
      expect(await texts(world, false)).toEqual(["later", "re two"]);
    });

    it("stays from the first turn on that ended later", async ({ world }) => {
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

    for (const how of ["queued", "running", "given back"]) {
      it(`stays from a turn on that is ${how}`, async ({ world }) => {
        const [ended = ""] = await talk(world, ["one"]);
        const place = await queueCompaction(world);
        const { turnId } = await world.start();
        await endCompaction(world, place);
        if (how !== "queued") {
          const claimed = await world.claimNext();
          if (how === "given back") await world.release(claimed, 60_000);
        }
        await world.sweep({ sessionsBefore: world.clock.now() });
        expect(await isKept(world, [ended, turnId])).toEqual([false, true]);
        expect((await seqs(world))[0]).toBe(7);
      });
    }

    it("stays from a turn on whose announcement is on its way", async ({ world }) => {
      const [first = ""] = await talk(world, ["one"]);
      const [announced = ""] = await talk(world, ["two"], { announce: { channel: "ops", hops: 0 } });
      await compact(world);
      await age(world);
      expect(await isKept(world, [first, announced])).toEqual([false, true]);
      const claimed = await world.store.claimAnnouncements({
        node: "node_a",
        leaseMs: 1e6,
        limit: 1,
        freeOf: () => 1,
      });
      const step = { at: world.clock.now(), name: "announcement.sent", detail: undefined };
      for (const { claim } of claimed.announcements) {
        await world.store.endAnnouncement(claim, { retryInMs: undefined, step });
      }
      await world.sweep({ sessionsBefore: world.clock.now() - 1 });
      expect(await isKept(world, [announced])).toEqual([false]);
    });

    it("takes a turn along with its first entry, and leaves the rest of it behind what is kept", async ({ world }) => {
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
};
