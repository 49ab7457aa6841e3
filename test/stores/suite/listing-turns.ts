import { describe, expect } from "vitest";
import { MOST_SCANNED } from "#store/rules/pages.ts";
import type { Turn, TurnQuery } from "#store/store.ts";
import { testsOn } from "../tests-on.ts";
import { type Engine, refusal, times, type World } from "../world.ts";

async function pagesOf({ store }: World, query: TurnQuery): Promise<Turn[][]> {
  const pages: Turn[][] = [];
  for (let cursor: string | undefined; ; ) {
    const page = await store.listTurns({ ...query, cursor });
    pages.push(page.items);
    cursor = page.next;
    if (cursor === undefined) return pages;
  }
}
function idsOf(turns: readonly Turn[]): string[] {
  return turns.map(({ turnId }) => turnId);
}
async function list(world: World, query: Partial<TurnQuery> = {}) {
  return idsOf((await world.store.listTurns({ limit: 100, ...query })).items);
}
function without(turn: Turn | undefined) {
  return turn && { ...turn, reply: undefined };
}

/** One turn of each state, in sessions of two agents; the oldest first. */
async function oneOfEach(world: World) {
  const completed = await world.start({ session: "chat:a", text: "1" });
  await world.end(await world.claimNext(), { reply: "a reply" });
  const failed = await world.start({ session: "chat:b", agent: "other", text: "2" });
  const error = { name: "turn-failed", detail: "no" } as const;
  await world.end(await world.claimNext(), { status: "failed", reply: "", error });
  const running = await world.start({ session: "chat:a", text: "3" });
  await world.claimNext();
  const cancelled = await world.start({ session: "chat:a", text: "4" });
  await world.store.cancelTurn(cancelled.turnId, world.clock.now());
  const queued = await world.start({ session: "chat:a", text: "5" });
  const { turnId } = queued;
  return { completed, failed, running, cancelled, queued: { ...queued, turnId } };
}

export function listingTurnsTests(engine: Engine): void {
  const it = testsOn(engine);
  describe("listing turns", () => {
    it("returns them newest first, as getTurn returns them but without the reply", async ({ world }) => {
      const turns = Object.values(await oneOfEach(world)).reverse();
      const { items, next } = await world.store.listTurns({ limit: 10 });
      expect(idsOf(items)).toEqual(idsOf(turns));
      expect(items).toEqual(
        await Promise.all(turns.map(async ({ turnId }) => without(await world.store.getTurn(turnId)))),
      );
      expect(next).toBeUndefined();
    });

    it("finds by state, agent and session, separately and together", async ({ world }) => {
      const { completed, failed, running, cancelled, queued } = await oneOfEach(world);
      for (const turn of Object.entries({ completed, failed, running, cancelled, queued })) {
        const [status, { turnId }] = turn as [Turn["status"], Turn];
        expect([status, await list(world, { status })]).toEqual([status, [turnId]]);
      }
      const ofMain = [queued, cancelled, running, completed];
      expect(await list(world, { agent: "main" })).toEqual(idsOf(ofMain));
      expect(await list(world, { sessionId: "chat:a" })).toEqual(idsOf(ofMain));
      expect(await list(world, { sessionId: "chat:b" })).toEqual([failed.turnId]);
      expect(await list(world, { sessionId: "chat:b", agent: "main" })).toEqual([]);
      expect(await list(world, { sessionId: "chat:a", status: "queued", agent: "main" })).toEqual([queued.turnId]);
      expect(await list(world, { status: "running", agent: "other" })).toEqual([]);
    });

    it.for([1, 2, 3, 100])("pages by %i have each turn once, whether it has ended or not", async (limit, { world }) => {
      for (const n of times(5, (n) => n)) {
        await world.start({ session: `chat:${n % 2}`, text: "x" });
        await world.end(await world.claimNext());
        await world.start({ session: `chat:open-${n}`, text: "x" });
        await world.claimNext();
        await world.start({ session: `chat:open-${n}`, text: "x" });
      }
      const all = await list(world);
      expect(all).toEqual([...all].sort().reverse());
      expect(all).toHaveLength(15);
      for (const query of [
        {},
        { agent: "main" },
        { sessionId: "chat:0" },
        { status: "queued" },
        { status: "completed" },
      ] as const) {
        const pages = await pagesOf(world, { ...query, limit });
        expect(pages.every(({ length }) => length <= limit)).toBe(true);
        expect(idsOf(pages.flat())).toEqual(await list(world, query));
      }
    });

    it("pages remain complete while turns start and end", async ({ world }) => {
      const before = (await Promise.all(times(6, (n) => world.start({ session: `chat:${n}`, text: "x" })))).map(
        ({ turnId }) => turnId,
      );
      const first = await world.store.listTurns({ limit: 2 });
      for (const claimed of await world.claim({ free: 3 }).then(({ turns }) => turns)) await world.end(claimed);
      await world.start({ session: "chat:new", text: "x" });
      const rest = await world.store.listTurns({ limit: 100, cursor: first.next });
      expect([...idsOf(first.items), ...idsOf(rest.items)].sort()).toEqual(before.sort());
    });

    it("omits deleted turns", async ({ world }) => {
      const { failed } = await oneOfEach(world);
      await world.store.deleteSession("chat:a", world.clock.now());
      expect(await list(world)).toEqual([failed.turnId]);
      expect(await list(world, { sessionId: "chat:a" })).toEqual([]);
      expect(await list(world, { status: "queued" })).toEqual([]);
      await world.sweep();
      expect(await list(world)).toEqual([failed.turnId]);
    });

    it("reads MOST_LOOKED_AT turns for a page, which may be empty and have a next one", {
      timeout: 120_000,
    }, async ({ world }) => {
      const oldest = await world.start({ session: "chat:old", agent: "other", text: "x" });
      await world.end(await world.claimNext());
      for (let n = 0; n < MOST_SCANNED; n += 500) {
        await Promise.all(times(500, (m) => world.start({ session: `chat:${m}`, text: "x" })));
        await world.store.failQueuedTurns("main", { name: "agent-removed", detail: undefined }, world.clock.now());
      }
      for (const query of [{ agent: "other" }, { status: "completed" }] as const)
        expect((await pagesOf(world, { ...query, limit: 10 })).map(idsOf)).toEqual([[], [oldest.turnId]]);
      expect(new Set(idsOf((await pagesOf(world, { limit: 500 })).flat())).size).toBe(MOST_SCANNED + 1);
    });

    it.for(["nonsense", "", "c0", "t", "turn_000001", "t'--", "\u0000"])(
      "refuses the cursor %j",
      async (cursor, { world }) => {
        expect(await refusal(world.store.listTurns({ limit: 10, cursor }))).toBe("invalid-params");
        expect(await refusal(world.store.listTurns({ limit: 10, cursor, status: "queued" }))).toBe("invalid-params");
      },
    );
  });
}
