import { describe, expect } from "vitest";
import type { ClaimedTurn, Compacted } from "#store/store.ts";
import { claimCompaction, endCompaction, startCompaction } from "../compactions.ts";
import { testsOn } from "../tests-on.ts";
import { type Engine, LEASE_MS, refusal, type World } from "../world.ts";

/** A compaction's outcome that covers everything up to a `seq`. */
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

/** Claims the next compaction. */
async function claimed(world: World): Promise<ClaimedTurn> {
  const next = await world.claimNext();
  expect(next).toMatchObject({ task: { kind: "compact" }, message: { text: "" }, replySeq: 0 });
  return next;
}

export function compactingTests(engine: Engine): void {
  const it = testsOn(engine);
  describe("a compaction in the queue", () => {
    it("can be claimed immediately if nothing is queued, with the agent and the last seq", async ({ world }) => {
      await talk(world, ["one"]);
      const { turn, claim, task } = await claimCompaction(world);
      expect(turn).toMatchObject({ agent: "main", seq: 6, status: "running", attempt: 1 });
      expect(claim).toMatchObject({ sessionId: "chat:a", node: "node_a" });
      expect(task).toEqual({ kind: "compact", keep: 0, keepTokens: undefined });
    });

    it("is after the turns that are already queued, and before later ones", async ({ world }) => {
      const [first, second] = [await world.start(), await world.start()];
      const turnId = await startCompaction(world);
      const third = await world.start();
      for (const { turnId } of [first, second]) {
        const claimed = await world.claimNext();
        expect(claimed.turn.turnId).toBe(turnId);
        expect((await world.claim()).turns).toEqual([]);
        world.told.length = 0;
        await world.end(claimed);
        await world.hears(({ kind }) => kind === "turn");
      }
      const compaction = await claimed(world);
      expect(compaction.turn).toMatchObject({ turnId, seq: 4 });
      expect((await world.claim()).turns).toEqual([]);
      expect(await endCompaction(world, compaction)).toBe(true);
      expect((await world.claimNext()).turn.turnId).toBe(third.turnId);
    });

    it("prevents a later turn from being claimed when it starts", async ({ world }) => {
      await talk(world, ["one"]);
      await startCompaction(world);
      const claim = { now: world.clock.now(), node: "node_a", leaseMs: LEASE_MS, replyMessageId: "msg_r" };
      expect((await world.store.startTurn(world.order({ claim }))).claimed).toBeUndefined();
      expect((await world.store.startTurn(world.order({ claim, session: "chat:b" }))).claimed).toBeDefined();
    });

    it("is the first when the turn before it is cancelled, and fails with its agent", async ({ world }) => {
      const { turnId } = await world.start();
      await startCompaction(world);
      await world.store.cancelTurn(turnId, world.clock.now());
      await endCompaction(world, await claimed(world));
      await world.start({ session: "chat:b" });
      const other = await startCompaction(world, { session: "chat:b" });
      const error = { name: "agent-removed", detail: undefined } as const;
      expect(await world.store.failQueuedTurns("main", error, world.clock.now())).toBe(1);
      await world.hears((what) => what.kind === "compacted" && what.turnId === other);
      expect((await world.claim()).turns).toEqual([]);
    });

    it("remains behind a turn that is released", async ({ world }) => {
      await world.start();
      const first = await world.claimNext();
      await startCompaction(world);
      await world.release(first);
      const again = await world.claimNext();
      expect(again.turn.attempt).toBe(2);
      expect((await world.claim()).turns).toEqual([]);
      await world.end(again);
      await claimed(world);
    });

    it("runs one at a time, on any gateway", async ({ world }) => {
      await talk(world, ["one"]);
      const first = await claimCompaction(world);
      await startCompaction(world);
      expect((await world.claim()).turns).toEqual([]);
      await endCompaction(world, first);
      const second = await world.claimNext({ node: "node_b" });
      expect(second.claim.node).toBe("node_b");
    });

    it("is refused if it must be the only one and another waits or runs", async ({ world }) => {
      await talk(world, ["one"]);
      await startCompaction(world, { isOnly: true });
      expect(await refusal(startCompaction(world, { isOnly: true }))).toBe("session-busy");
      const running = await claimed(world);
      expect(await refusal(startCompaction(world, { isOnly: true }))).toBe("session-busy");
      await startCompaction(world);
      await endCompaction(world, running);
      await endCompaction(world, await claimed(world));
      await world.start();
      await startCompaction(world, { isOnly: true });
    });

    it("has its own lane, which a pause does not close", async ({ world }) => {
      await talk(world, ["one"]);
      await world.start({ session: "chat:b" });
      await world.store.setPaused("main", { paused: true, now: 1, streamKeep: 10 });
      await endCompaction(world, await claimCompaction(world));
      const first = await claimCompaction(world);
      await startCompaction(world);
      await endCompaction(world, first);
      expect((await world.claim({ freeOf: (_, lane) => (lane === "compact" ? 0 : 9) })).turns).toEqual([]);
      const { turns } = await world.claim({ freeOf: (_, lane) => (lane === "compact" ? 1 : 0) });
      expect(turns).toMatchObject([{ task: { kind: "compact" } }]);
    });

    it("can be cancelled: immediately while it waits, and by the notified gateway while it runs", async ({ world }) => {
      await talk(world, ["one"]);
      const running = await claimCompaction(world);
      const waiting = await startCompaction(world);
      const { turnId } = await world.start();
      await world.store.cancelTurn(waiting, world.clock.now());
      await world.hears((what) => what.kind === "compacted" && what.turnId === waiting);
      await world.store.cancelTurn(running.turn.turnId, world.clock.now());
      await world.hears((what) => what.kind === "cancel" && what.turnId === running.turn.turnId);
      expect(await world.release(running)).toBe(true);
      await world.hears((what) => what.kind === "compacted" && what.turnId === running.turn.turnId);
      expect((await world.claimNext()).turn.turnId).toBe(turnId);
    });

    it("runs again when its lease expires, until it has failed the maximum number of times", async ({ world }) => {
      await talk(world, ["one"]);
      const slow = await claimCompaction(world);
      const { turnId } = await world.start();
      await world.clock.advance(LEASE_MS - 1);
      expect(await world.store.extendClaims([slow.claim], LEASE_MS)).toEqual([]);
      await world.clock.advance(LEASE_MS - 1);
      await world.sweep();
      expect((await world.claim()).turns).toEqual([]);
      await world.clock.advance(1);
      await world.sweep();
      expect(await world.store.extendClaims([slow.claim], LEASE_MS)).toEqual([slow.claim]);
      expect(await endCompaction(world, slow, through(6))).toBe(false);
      expect(await world.store.readSummary("chat:a")).toBeUndefined();
      expect((await claimed(world)).turn).toMatchObject({ turnId: slow.turn.turnId, attempt: 2 });
      await world.clock.advance(LEASE_MS);
      await world.sweep({ maxAttempts: 2 });
      await world.hears((what) => what.kind === "compacted" && what.result.error !== undefined);
      expect((await world.claimNext()).turn.turnId).toBe(turnId);
    });

    it("is refused for a session that does not exist, a full queue and a full store", async ({ world }) => {
      expect(await refusal(startCompaction(world))).toBe("session-not-found");
      await talk(world, ["one"]);
      await startCompaction(world);
      await world.start();
      expect(await refusal(startCompaction(world, { limits: { turnsPerSession: 2 } }))).toBe("session-busy");
      expect(await refusal(startCompaction(world, { limits: { storeBytes: 1 } }))).toBe("store-full");
      await startCompaction(world, { limits: { turnsPerSession: 3 } });
    });

    it("is not counted as a turn, and is in no list", async ({ world }) => {
      const { turnId } = await world.start();
      const before = await world.everything(["chat:a"], [turnId]);
      const compaction = await startCompaction(world);
      const seen = await world.everything(["chat:a"], [turnId]);
      expect({ ...seen, stats: { ...seen.stats, bytes: before.stats.bytes } }).toEqual(before);
      expect(world.store.agentCounts("main")).toMatchObject({ queued: 1, running: 0 });
      await world.end(await world.claimNext());
      await claimed(world);
      expect(await world.store.getSession("chat:a")).toMatchObject({ turnsQueued: 0, turnsRunning: 0 });
      expect(world.store.stats()).toMatchObject({ turnsQueued: 0, turnsRunning: 0 });
      for (const status of [undefined, "running", "queued"] as const) {
        const { items } = await world.store.listTurns({ limit: 10, ...(status && { status }) });
        expect(items.map((turn) => turn.turnId)).not.toContain(compaction);
      }
    });

    it("is deleted with its session, whose id can then be used again", async ({ world }) => {
      await world.start();
      const turnId = await startCompaction(world);
      expect(await world.store.deleteSession("chat:a", world.clock.now())).toEqual({ turnsCancelled: 1 });
      const gone = { error: { name: "session-not-found" } };
      await world.hears((what) => what.kind === "compacted" && what.turnId === turnId);
      expect(world.told.find(({ kind }) => kind === "compacted")).toMatchObject({ result: gone });
      await talk(world, ["one"]);
      const running = await claimCompaction(world);
      expect(await world.store.deleteSession("chat:a", world.clock.now())).toEqual({ turnsCancelled: 0 });
      await world.hears((what) => what.kind === "cancel" && what.turnId === running.turn.turnId);
      await world.start();
      expect(await endCompaction(world, running, through(2))).toBe(false);
      expect((await world.claim()).turns).toHaveLength(1);
    });
  });

  describe("compacting a session", () => {
    it("stores the summary, marks the messages and appends the entry", async ({ world }) => {
      await talk(world, ["one", "two"]);
      const place = await claimCompaction(world);
      const at = world.clock.now();
      const sizes = { before: { messages: 4, tokens: 40 }, after: { messages: 1, tokens: 7 } };
      expect(await endCompaction(world, place, through(12, { except: [11], ...sizes, outside: true }))).toBe(true);
      expect(await world.store.readSummary("chat:a")).toEqual({ text: "in short", outside: true });
      expect(await texts(world)).toEqual(["re two"]);
      expect(await texts(world, { includeCompacted: true })).toEqual(["re two", "two", "re one", "one"]);
      const all = await world.store.readMessages("chat:a", { limit: 100, includeCompacted: true });
      expect(all.map(({ compacted }) => compacted)).toEqual([false, true, true, true]);
      const entry = { seq: 13, at, turnId: place.turn.turnId, name: "session.compacted", ...sizes };
      expect((await world.entries()).at(-1)).toEqual(entry);
      await world.hears((what) => what.kind === "entries" && what.entries.at(-1)?.name === "session.compacted");
      expect(world.told.findLast(({ kind }) => kind === "entries")).toMatchObject({ entries: [entry] });
      await world.hears((what) => what.kind === "compacted" && what.turnId === place.turn.turnId);
      const result = { ...sizes, isCompacted: true, reason: undefined, error: undefined };
      expect(world.told.find(({ kind }) => kind === "compacted")).toMatchObject({ result });
      expect(await world.store.getSession("chat:a")).toMatchObject({ messageCount: 4, lastSeq: 13, updatedAt: at });
    });

    it("changes nothing if there is nothing to compact", async ({ world }) => {
      await talk(world, ["one"]);
      const before = await world.everything(["chat:a"]);
      await endCompaction(world, await claimCompaction(world));
      expect(await world.everything(["chat:a"])).toEqual(before);
      expect(await world.store.readSummary("chat:a")).toBeUndefined();
    });

    it("stores nothing for a compaction that another gateway has claimed, or that has ended", async ({ world }) => {
      await talk(world, ["one"]);
      const first = await claimCompaction(world);
      const other = { claim: { ...first.claim, node: "node_b" } };
      expect(await endCompaction(world, other, through(6))).toBe(false);
      expect(await endCompaction(world, first)).toBe(true);
      expect(await endCompaction(world, first, through(6))).toBe(false);
      expect(await world.store.readSummary("chat:a")).toBeUndefined();
      expect(await world.names()).not.toContain("session.compacted");
    });

    it("does not mark later messages, including those that arrived while it ran", async ({ world }) => {
      await talk(world, ["one"]);
      const place = await claimCompaction(world);
      await world.start({ text: "meanwhile" });
      await endCompaction(world, place, through(6));
      await world.end(await world.claimNext(), { reply: "re meanwhile" });
      await talk(world, ["later"]);
      expect(await texts(world)).toEqual(["re later", "later", "re meanwhile", "meanwhile"]);
    });

    it("replaces the first summary with the second, and marks the messages that the first left", async ({ world }) => {
      for (const text of ["one", "two"]) await world.start({ text });
      for (const _ of [1, 2]) await world.end(await world.claimNext(), { reply: "re" });
      const seqOf = async (text: string) =>
        (await world.store.readMessages("chat:a", { limit: 100, includeCompacted: true })).find(
          (message) => message.text === text,
        )?.seq ?? 0;
      const { lastSeq } = (await world.store.getSession("chat:a")) ?? { lastSeq: 0 };
      await endCompaction(world, await claimCompaction(world), through(lastSeq, { except: [await seqOf("two")] }));
      expect(await texts(world)).toEqual(["two"]);
      await endCompaction(world, await claimCompaction(world), through(await seqOf("two"), { summary: "shorter" }));
      expect(await texts(world)).toEqual([]);
      expect(await texts(world, { includeCompacted: true })).toHaveLength(4);
      expect(await world.store.readSummary("chat:a")).toMatchObject({ text: "shorter" });
    });

    it("pages through messages with and without the compacted ones", async ({ world }) => {
      await talk(world, ["1", "2", "3", "4"]);
      const all = await world.store.readMessages("chat:a", { limit: 100 });
      const kept = all.filter(({ text }) => text === "2" || text === "re 4");
      const { lastSeq } = (await world.store.getSession("chat:a")) ?? { lastSeq: 0 };
      await endCompaction(
        world,
        await claimCompaction(world),
        through(lastSeq, { except: kept.map(({ seq }) => seq) }),
      );
      expect(await texts(world, { limit: 1 })).toEqual(["re 4"]);
      expect(await texts(world, { limit: 1, before: kept[0]?.seq })).toEqual(["2"]);
      expect(await texts(world, { limit: 1, before: kept[1]?.seq })).toEqual([]);
      expect(await texts(world, { limit: 2, before: kept[0]?.seq, includeCompacted: true })).toEqual(["4", "re 3"]);
    });

    it("counts in bytes what a turn reads, and makes room in a full session", async ({ world }) => {
      await talk(world, ["ü"]);
      const bytes = async () => (await world.store.getSession("chat:a"))?.contextBytes;
      expect(await bytes()).toBe(2 + 5);
      const limits = { messagesPerSession: 2 };
      expect(await refusal(world.start({ limits }))).toBe("session-full");
      const sizes = { before: { messages: 2, tokens: 3 }, after: { messages: 1, tokens: 2 } };
      await endCompaction(world, await claimCompaction(world), through(5, { except: [5], freedBytes: -6, ...sizes }));
      expect(await bytes()).toBe(13);
      expect((await world.start({ limits })).status).toBe("queued");
      expect(await refusal(world.start({ limits }))).toBe("session-full");
    });

    it("is deleted with its session", async ({ world }) => {
      await talk(world, ["one"]);
      await endCompaction(world, await claimCompaction(world), through(6, { summary: "x".repeat(10_000) }));
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
