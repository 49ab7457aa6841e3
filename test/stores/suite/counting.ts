import { describe, expect } from "vitest";
import { testsOn } from "../tests-on.ts";
import { type Engine, LEASE_MS } from "../world.ts";

const FAILED = { status: "failed" } as const;

export const countingTests = (engine: Engine): void => {
  const it = testsOn(engine);
  describe("counting an agent's turns", () => {
    it("counts those that wait and those that run, of each agent, as they come and go", async ({ world }) => {
      const counts = (agent = "main") => {
        const { queued, running } = world.store.agentCounts(agent);
        return [queued, running];
      };
      await world.start({ agent: "other", session: "chat:other" });
      const { turnId } = await world.start({ session: "chat:1" });
      for (const session of ["chat:2", "chat:3", "chat:4", "chat:4"]) await world.start({ session });
      expect([counts(), counts("other")]).toEqual([
        [5, 0],
        [1, 0],
      ]);
      const { turns } = await world.claim({ freeOf: (agent) => (agent === "main" ? 9 : 0) });
      expect([counts(), counts("other")]).toEqual([
        [1, 4],
        [1, 0],
      ]);
      const of = (session: string) => turns.find(({ turn }) => turn.sessionId === session) as (typeof turns)[0];
      await world.release(of("chat:2"));
      expect(counts()).toEqual([2, 3]);
      await world.store.cancelTurn(turnId, world.clock.now());
      await world.release(of("chat:1"));
      expect(counts()).toEqual([2, 2]);
      await world.store.deleteSession("chat:4", world.clock.now());
      expect(counts()).toEqual([1, 1]);
      await world.clock.advance(LEASE_MS);
      await world.sweep({ maxAttempts: 1 });
      expect(counts()).toEqual([1, 0]);
      await world.store.failQueuedTurns("main", { name: "agent-removed", detail: undefined }, world.clock.now());
      expect([counts(), counts("other")]).toEqual([
        [0, 0],
        [1, 0],
      ]);
    });

    it("knows when the last turn ended", async ({ world }) => {
      await world.start();
      const claimed = await world.claimNext();
      await world.clock.advance(70);
      await world.end(claimed);
      expect(world.store.agentCounts("main").lastEndedAt).toBe(world.clock.now());
    });

    it("is failing from the turn that its backend failed in to one that completes", async ({ world }) => {
      const run = async (how: Parameters<typeof world.end>[1]) => {
        await world.start();
        await world.end(await world.claimNext(), how);
        return world.store.agentCounts("main").failing;
      };
      expect(await run({})).toBe(false);
      expect(await run(FAILED)).toBe(true);
      expect(await run({ status: "cancelled" })).toBe(true);
      expect(await run({})).toBe(false);
      expect(await run({ ...FAILED, error: { name: "turn-timeout", detail: undefined } })).toBe(true);
      expect(await run({})).toBe(false);
      expect(await run({ ...FAILED, error: { name: "agent-removed", detail: undefined } })).toBe(false);
      await world.start();
      await world.store.failQueuedTurns("main", { name: "turn-failed", detail: undefined }, world.clock.now());
      expect(world.store.agentCounts("main").failing).toBe(false);
    });
  });
};
