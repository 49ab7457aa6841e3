import { describe, expect } from "vitest";
import type { Compacted } from "#store/store.ts";
import { testsOn } from "../tests-on.ts";
import { type Engine, LEASE_MS, refusal, type World, type WorldOptions } from "../world.ts";

function queue(
  world: World,
  {
    session = "chat:a",
    node = "node_a",
    limits,
  }: { session?: string; node?: string; limits?: WorldOptions["limits"] } = {},
) {
  return world.store.queueCompaction({
    now: world.clock.now(),
    compactionId: world.newId("cmp"),
    sessionId: session,
    node,
    leaseMs: LEASE_MS,
    limits: world.order({ limits }).limits,
  });
}

/** A compaction's outcome that stands for everything up to a `seq`. */
function through(seq: number, rest: Partial<Compacted> = {}): Compacted {
  return {
    summary: "in short",
    outside: false,
    through: seq,
    except: [],
    before: { messages: 4, tokens: 40 },
    after: { messages: 0, tokens: 2 },
    freedBytes: 0,
    ...rest,
  };
}

async function talk(world: World, texts: readonly string[], session = "chat:a") {
  for (const text of texts) {
    await world.start({ text, session });
    await world.end(await world.claimNext(), { reply: `re ${text}` });
  }
}
async function texts(world: World, query: { before?: number; limit?: number; includeCompacted?: boolean } = {}) {
  return (await world.store.readMessages("chat:a", { limit: 100, ...query })).map(({ text }) => text);
}

type Place = Awaited<ReturnType<typeof queue>>;
function end(world: World, { claim }: Place, compacted?: Compacted) {
  return world.store.endCompaction(claim, { now: world.clock.now(), compacted });
}
function mayBegin(world: World, { claim }: Place) {
  return world.told.some((what) => what.kind === "compaction" && what.compactionId === claim.turnId);
}

export function compactingTests(engine: Engine): void {
  const it = testsOn(engine);
  describe("a compaction's place in the queue", () => {
    it("is the first where nothing waits, with the agent and the last seq", async ({ world }) => {
      await talk(world, ["one"]);
      expect(await queue(world)).toMatchObject({ agent: "main", seq: 6, isFirst: true });
    });

    it("comes after the turns that wait, and before those that come later", async ({ world }) => {
      const [first, second] = [await world.start(), await world.start()];
      const place = await queue(world);
      const third = await world.start();
      expect(place).toMatchObject({ isFirst: false, seq: 4 });
      for (const { turnId } of [first, second]) {
        expect(mayBegin(world, place)).toBe(false);
        const claimed = await world.claimNext();
        expect(claimed.turn.turnId).toBe(turnId);
        expect((await world.claim()).turns).toEqual([]);
        await world.end(claimed);
      }
      await world.hears(() => mayBegin(world, place));
      expect((await world.claim()).turns).toEqual([]);
      expect(await end(world, place)).toBe(true);
      expect((await world.claimNext()).turn.turnId).toBe(third.turnId);
    });

    it("lets no turn begin at once that comes after it", async ({ world }) => {
      await talk(world, ["one"]);
      await queue(world);
      const claim = { now: world.clock.now(), node: "node_a", leaseMs: LEASE_MS, replyMessageId: "msg_r" };
      expect((await world.store.startTurn(world.order({ claim }))).claimed).toBeUndefined();
      expect((await world.store.startTurn(world.order({ claim, session: "chat:b" }))).claimed).toBeDefined();
    });

    it("is the first when the turn before it is cancelled, or fails with its agent", async ({ world }) => {
      const { turnId } = await world.start();
      const place = await queue(world);
      await world.store.cancelTurn(turnId, world.clock.now());
      await world.hears(() => mayBegin(world, place));
      await world.start({ session: "chat:b" });
      const other = await queue(world, { session: "chat:b" });
      await world.store.failQueuedTurns("main", { name: "agent-removed", detail: undefined }, world.clock.now());
      await world.hears(() => mayBegin(world, other));
    });

    it("stays behind a turn that is given back", async ({ world }) => {
      await world.start();
      const claimed = await world.claimNext();
      const place = await queue(world);
      await world.release(claimed);
      const again = await world.claimNext();
      expect(again.turn.attempt).toBe(2);
      expect(mayBegin(world, place)).toBe(false);
      await world.end(again);
      await world.hears(() => mayBegin(world, place));
    });

    it("is taken one after another", async ({ world }) => {
      await talk(world, ["one"]);
      const [first, second] = [await queue(world), await queue(world)];
      expect([first.isFirst, second.isFirst]).toEqual([true, false]);
      await end(world, first);
      await world.hears(() => mayBegin(world, second));
    });

    it("can be given up before it is the first", async ({ world }) => {
      await world.start();
      const place = await queue(world);
      const { turnId } = await world.start();
      expect(await end(world, place)).toBe(true);
      await world.end(await world.claimNext());
      expect(mayBegin(world, place)).toBe(false);
      expect((await world.claimNext()).turn.turnId).toBe(turnId);
    });

    it("is lost when its lease ends, and what waits behind it goes on", async ({ world }) => {
      await talk(world, ["one"]);
      const place = await queue(world);
      const { turnId } = await world.start();
      await world.clock.advance(LEASE_MS - 1);
      expect(await world.store.extendClaims([place.claim], LEASE_MS)).toEqual([]);
      await world.clock.advance(LEASE_MS - 1);
      await world.sweep();
      expect((await world.claim()).turns).toEqual([]);
      await world.clock.advance(1);
      await world.sweep();
      expect(await world.store.extendClaims([place.claim], LEASE_MS)).toEqual([place.claim]);
      expect(await end(world, place, through(6))).toBe(false);
      expect(await world.store.readSummary("chat:a")).toBeUndefined();
      expect((await world.claimNext()).turn.turnId).toBe(turnId);
    });

    it("is refused for a session that is not there, a full queue and a full store", async ({ world }) => {
      expect(await refusal(queue(world))).toBe("session-not-found");
      await talk(world, ["one"]);
      await queue(world);
      await world.start();
      expect(await refusal(queue(world, { limits: { turnsPerSession: 2 } }))).toBe("session-busy");
      expect(await refusal(queue(world, { limits: { storeBytes: 1 } }))).toBe("store-full");
      expect((await queue(world, { limits: { turnsPerSession: 3 } })).isFirst).toBe(false);
    });

    it("goes with its session, which can begin anew", async ({ world }) => {
      await world.start();
      const place = await queue(world);
      expect(await world.store.deleteSession("chat:a", world.clock.now())).toEqual({ turnsCancelled: 1 });
      await world.start();
      expect(await end(world, place, through(2))).toBe(false);
      expect(mayBegin(world, place)).toBe(false);
      expect((await world.claim()).turns).toHaveLength(1);
    });
  });

  describe("compacting a session", () => {
    it("keeps the summary, marks the messages and appends the entry", async ({ world }) => {
      await talk(world, ["one", "two"]);
      const place = await queue(world);
      const at = world.clock.now();
      const sizes = { before: { messages: 4, tokens: 40 }, after: { messages: 1, tokens: 7 } };
      expect(await end(world, place, through(12, { except: [11], ...sizes, outside: true }))).toBe(true);
      expect(await world.store.readSummary("chat:a")).toEqual({ text: "in short", outside: true });
      expect(await texts(world)).toEqual(["re two"]);
      expect(await texts(world, { includeCompacted: true })).toEqual(["re two", "two", "re one", "one"]);
      const all = await world.store.readMessages("chat:a", { limit: 100, includeCompacted: true });
      expect(all.map(({ compacted }) => compacted)).toEqual([false, true, true, true]);
      const entry = { seq: 13, at, turnId: "", name: "session.compacted", ...sizes };
      expect((await world.entries()).at(-1)).toEqual(entry);
      await world.hears((what) => what.kind === "entries" && what.entries.at(-1)?.name === "session.compacted");
      expect(world.told.at(-1)).toEqual({ kind: "entries", sessionId: "chat:a", entries: [entry] });
      expect(await world.store.getSession("chat:a")).toMatchObject({ messageCount: 4, lastSeq: 13, updatedAt: at });
    });

    it("changes nothing when there is nothing to compact", async ({ world }) => {
      await talk(world, ["one"]);
      const before = await world.everything(["chat:a"]);
      await end(world, await queue(world));
      expect(await world.everything(["chat:a"])).toEqual(before);
      expect(await world.store.readSummary("chat:a")).toBeUndefined();
    });

    it("keeps nothing of one that is not the first, or that has ended", async ({ world }) => {
      await talk(world, ["one"]);
      const [first, second] = [await queue(world), await queue(world)];
      expect(await end(world, second, through(6))).toBe(false);
      expect(
        await world.store.endCompaction({ ...first.claim, node: "node_b" }, { now: 1, compacted: through(6) }),
      ).toBe(false);
      expect(await end(world, first)).toBe(true);
      expect(await end(world, first, through(6))).toBe(false);
      expect(await world.store.readSummary("chat:a")).toBeUndefined();
      expect(await world.names()).not.toContain("session.compacted");
    });

    it("leaves what comes later unmarked, also what came while it ran", async ({ world }) => {
      await talk(world, ["one"]);
      const place = await queue(world);
      await world.start({ text: "meanwhile" });
      await end(world, place, through(6));
      await world.end(await world.claimNext(), { reply: "re meanwhile" });
      await talk(world, ["later"]);
      expect(await texts(world)).toEqual(["re later", "later", "re meanwhile", "meanwhile"]);
    });

    it("puts a second summary in the place of the first, and marks what the first left", async ({ world }) => {
      for (const text of ["one", "two"]) await world.start({ text });
      for (const _ of [1, 2]) await world.end(await world.claimNext(), { reply: "re" });
      const seqOf = async (text: string) =>
        (await world.store.readMessages("chat:a", { limit: 100, includeCompacted: true })).find(
          (message) => message.text === text,
        )?.seq ?? 0;
      const { lastSeq } = (await world.store.getSession("chat:a")) ?? { lastSeq: 0 };
      await end(world, await queue(world), through(lastSeq, { except: [await seqOf("two")] }));
      expect(await texts(world)).toEqual(["two"]);
      await end(world, await queue(world), through(await seqOf("two"), { summary: "shorter" }));
      expect(await texts(world)).toEqual([]);
      expect(await texts(world, { includeCompacted: true })).toHaveLength(4);
      expect(await world.store.readSummary("chat:a")).toMatchObject({ text: "shorter" });
    });

    it("pages through messages with and without those that are compacted", async ({ world }) => {
      await talk(world, ["1", "2", "3", "4"]);
      const all = await world.store.readMessages("chat:a", { limit: 100 });
      const kept = all.filter(({ text }) => text === "2" || text === "re 4");
      const { lastSeq } = (await world.store.getSession("chat:a")) ?? { lastSeq: 0 };
      await end(world, await queue(world), through(lastSeq, { except: kept.map(({ seq }) => seq) }));
      expect(await texts(world, { limit: 1 })).toEqual(["re 4"]);
      expect(await texts(world, { limit: 1, before: kept[0]?.seq })).toEqual(["2"]);
      expect(await texts(world, { limit: 1, before: kept[1]?.seq })).toEqual([]);
      expect(await texts(world, { limit: 2, before: kept[0]?.seq, includeCompacted: true })).toEqual(["4", "re 3"]);
    });

    it("counts in bytes what a turn reads, and makes room in a session that was full", async ({ world }) => {
      await talk(world, ["ü"]);
      const bytes = async () => (await world.store.getSession("chat:a"))?.contextBytes;
      expect(await bytes()).toBe(2 + 5);
      const limits = { messagesPerSession: 2 };
      expect(await refusal(world.start({ limits }))).toBe("session-full");
      const sizes = { before: { messages: 2, tokens: 3 }, after: { messages: 1, tokens: 2 } };
      await end(world, await queue(world), through(5, { except: [5], freedBytes: -6, ...sizes }));
      expect(await bytes()).toBe(13);
      expect((await world.start({ limits })).status).toBe("queued");
      expect(await refusal(world.start({ limits }))).toBe("session-full");
    });

    it("is forgotten with its session", async ({ world }) => {
      await talk(world, ["one"]);
      await end(world, await queue(world), through(6, { summary: "x".repeat(10_000) }));
      const { bytes } = world.store.stats();
      await world.store.deleteSession("chat:a", world.clock.now());
      expect(world.store.stats().bytes).toBeLessThan(bytes - 10_000);
      await talk(world, ["two"]);
      expect(await world.store.readSummary("chat:a")).toBeUndefined();
      expect(await texts(world)).toEqual(["re two", "two"]);
      expect(await world.store.readSummary("chat:unknown")).toBeUndefined();
    });
  });
}
