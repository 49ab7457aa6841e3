import { describe, expect } from "vitest";
import { claimCompaction, endCompaction } from "../compactions.ts";
import { claimBeat, planBeat, queueEvent, STREAM_KEEP, startBeat, toldNews } from "../inbound.ts";
import { testsOn } from "../tests-on.ts";
import { type Engine, LEASE_MS, type World } from "../world.ts";

function set(world: World, paused: boolean, agent = "main") {
  return world.store.setPaused(agent, { paused, now: world.clock.now(), streamKeep: STREAM_KEEP });
}
function pause(world: World, agent?: string) {
  return set(world, true, agent);
}
function resume(world: World, agent?: string) {
  return set(world, false, agent);
}

function claimAtOnce(world: World) {
  return { now: world.clock.now(), node: "node_a", leaseMs: LEASE_MS, replyMessageId: world.newId("msg") } as const;
}
async function startAtOnce(world: World, options: Parameters<World["order"]>[0] = {}) {
  return (await world.store.startTurn(world.order({ claim: claimAtOnce(world), ...options }))).claimed;
}

async function claimedIds(world: World): Promise<string[]> {
  return (await world.claim()).turns.map(({ turn }) => turn.turnId);
}

const FAILED = { status: "failed" } as const;

export function pausingTests(engine: Engine): void {
  const it = testsOn(engine);
  describe("pausing an agent", () => {
    it("stores the time of the pause, and reports it once on the gateway's stream; a second pause does not change the time", async ({
      world,
    }) => {
      expect(world.store.agentCounts("main").pausedAt).toBeUndefined();
      const pausedAt = world.clock.now();
      expect(await pause(world)).toEqual({ pausedAt, isChanged: true });
      await world.clock.advance(1_000);
      expect(await pause(world)).toEqual({ pausedAt, isChanged: false });
      expect(world.store.agentCounts("main").pausedAt).toBe(pausedAt);
      expect(await resume(world)).toEqual({ pausedAt: undefined, isChanged: true });
      expect(await resume(world)).toEqual({ pausedAt: undefined, isChanged: false });
      expect(world.store.agentCounts("main").pausedAt).toBeUndefined();
      expect(toldNews(world)).toMatchObject([
        { seq: 1, at: pausedAt, name: "agent.paused", agentName: "main" },
        { seq: 2, name: "agent.resumed", agentName: "main" },
      ]);
    });

    it("reports nothing for resuming an agent that was never paused, or that is unknown", async ({ world }) => {
      expect(await resume(world, "nobody")).toEqual({ pausedAt: undefined, isChanged: false });
      expect(world.told).toEqual([]);
    });

    it("accepts turns, and returns none to claims until it is resumed, then all in their order", async ({ world }) => {
      const before = await world.start({ session: "chat:a" });
      await pause(world);
      const ids = [before.turnId];
      for (const [n, session] of ["chat:a", "chat:b", "chat:c"].entries()) {
        const { turn, claimed } = await world.store.startTurn(
          world.order({ session, waited: n === 1, claim: claimAtOnce(world) }),
        );
        expect(claimed).toBeUndefined();
        expect(turn.status).toBe("queued");
        ids.push(turn.turnId);
      }
      expect(await world.claim()).toEqual({ turns: [], nextDueInMs: undefined });
      expect(world.store.agentCounts("main")).toMatchObject({ queued: 4, running: 0 });
      const heard = world.told.length;
      await resume(world);
      expect(world.told.slice(heard).some(({ kind }) => kind === "turn")).toBe(true);
      const order: string[] = [];
      for (let n = 0; n < 4; n++) {
        const claimed = await world.claimNext({ freeOf: () => 1 });
        order.push(claimed.turn.turnId);
        await world.end(claimed);
      }
      // The turn with a waiting caller alternates with the others.
      expect(order.filter((id) => id !== ids[2])).toEqual([ids[0], ids[3], ids[1]]);
      expect([...order].sort()).toEqual([...ids].sort());
    });

    it("does not stop a claimed turn, and no turn behind it starts", async ({ world }) => {
      const running = await startAtOnce(world);
      const next = await world.start();
      await pause(world);
      if (!running) throw new Error("the turn was not claimed at once");
      expect(await world.store.extendClaims([running.claim], LEASE_MS)).toEqual([]);
      expect(await world.end(running)).toBe(true);
      expect(await claimedIds(world)).toEqual([]);
      await resume(world);
      expect(await claimedIds(world)).toEqual([next.turnId]);
    });

    it("holds a turn that was released, or whose lease expired, until the agent is resumed", async ({ world }) => {
      const [back, lost] = [
        await startAtOnce(world, { session: "chat:a" }),
        await startAtOnce(world, { session: "chat:b" }),
      ];
      if (!back || !lost) throw new Error("the turns were not claimed at once");
      await pause(world);
      await world.release(back, 100);
      await world.clock.advance(LEASE_MS + 1);
      await world.sweep();
      expect(await claimedIds(world)).toEqual([]);
      await resume(world);
      expect((await claimedIds(world)).sort()).toEqual([back.turn.turnId, lost.turn.turnId].sort());
    });

    it("stops only the agent's own turns and beats", async ({ world }) => {
      await pause(world);
      await world.start();
      for (const agent of ["main", "other"]) await planBeat(world, 0, false, agent);
      const other = await world.start({ session: "chat:b", agent: "other" });
      expect(await claimedIds(world)).toEqual([other.turnId]);
      expect(await startAtOnce(world, { session: "chat:c", agent: "other" })).toBeDefined();
      expect((await world.store.dueBeats(["main", "other"])).due).toEqual(["other"]);
    });

    it("allows that its queued turns are cancelled, and that they fail with the agent", async ({ world }) => {
      await pause(world);
      const [one, two] = [await world.start({ session: "chat:a" }), await world.start({ session: "chat:b" })];
      expect((await world.store.cancelTurn(one.turnId, world.clock.now())).status).toBe("cancelled");
      const error = { name: "agent-removed", detail: undefined } as const;
      expect(await world.store.failQueuedTurns("main", error, world.clock.now())).toBe(1);
      expect(await world.store.getTurn(two.turnId)).toMatchObject({ status: "failed" });
      expect(world.store.agentCounts("main").pausedAt).toBeDefined();
    });

    it("accepts events and starts no beat, even if one is requested; after it is resumed the beat is due immediately", async ({
      world,
    }) => {
      await planBeat(world, 1_000);
      await pause(world);
      expect(await world.store.dueBeats(["main"])).toEqual({ due: [], nextDueInMs: undefined });
      await queueEvent(world, { beatNow: true });
      await world.clock.advance(5_000);
      expect(await world.store.dueBeats(["main"])).toEqual({ due: [], nextDueInMs: undefined });
      expect(await startBeat(world)).toEqual({ outcome: "not-due" });
      expect(world.store.agentCounts("main").waitingEvents).toBe(1);
      const heard = world.told.length;
      await resume(world);
      expect(world.told.slice(heard).some(({ kind }) => kind === "beat")).toBe(true);
      expect((await world.store.dueBeats(["main"])).due).toEqual(["main"]);
      expect(await startBeat(world)).toMatchObject({ outcome: "started" });
    });

    it("does not stop a running beat: its next turn waits in the queue", async ({ world }) => {
      for (let n = 0; n < 2; n++) await queueEvent(world);
      await planBeat(world, 0);
      const first = await claimBeat(world, { batch: { limit: 1 } });
      await pause(world);
      await world.end(first);
      expect((await world.store.dueBeats(["main"])).due).toEqual(["main"]);
      const step = await startBeat(world, { node: "node_a", batch: { limit: 1 } });
      expect(step).toMatchObject({ outcome: "started", started: { claimed: undefined } });
      expect(await claimedIds(world)).toEqual([]);
      await resume(world);
      await world.end(await world.claimNext());
      expect(await startBeat(world)).toMatchObject({ outcome: "ended", events: 2, turns: 2 });
    });

    it("does not stop a compaction", async ({ world }) => {
      await world.start();
      await world.end(await world.claimNext());
      await pause(world);
      expect(await endCompaction(world, await claimCompaction(world))).toBe(true);
    });

    it("has one effect, however many calls pause or resume at once", async ({ world }) => {
      const paused = await Promise.all(Array.from({ length: 8 }, () => pause(world)));
      expect(paused.filter(({ isChanged }) => isChanged)).toHaveLength(1);
      const resumed = await Promise.all(Array.from({ length: 8 }, () => resume(world)));
      expect(resumed.filter(({ isChanged }) => isChanged)).toHaveLength(1);
      expect(toldNews(world)).toHaveLength(2);
    });

    it("loses and repeats no turn when the agent is paused and resumed again and again", async ({ world }) => {
      const started: string[] = [];
      const claimed: string[] = [];
      for (let n = 0; n < 20; n++) {
        const [turn, , { turns }] = await Promise.all([
          world.start({ session: `chat:${n}` }),
          set(world, n % 2 === 0),
          world.claim(),
        ]);
        started.push(turn.turnId);
        claimed.push(...turns.map(({ turn }) => turn.turnId));
      }
      await resume(world);
      claimed.push(...(await claimedIds(world)));
      expect([...claimed].sort()).toEqual([...started].sort());
    });

    if (engine.reopen)
      it("survives a restart of the store with the waiting turns; so does the end of the pause", async ({ world }) => {
        const { pausedAt } = await pause(world);
        await pause(world, "never-had-a-turn");
        const turn = await world.start();
        await world.reopen();
        expect(world.store.agentCounts("main")).toMatchObject({ pausedAt, queued: 1 });
        expect(world.store.agentCounts("never-had-a-turn").lastEndedAt).toBeUndefined();
        expect(await claimedIds(world)).toEqual([]);
        expect(await resume(world, "never-had-a-turn")).toMatchObject({ isChanged: true });
        await resume(world);
        await world.reopen();
        expect(world.store.agentCounts("main").pausedAt).toBeUndefined();
        expect(await claimedIds(world)).toEqual([turn.turnId]);
      });
  });

  describe("counting an agent's turns", () => {
    it("counts waiting and running turns of each agent, as they start and end", async ({ world }) => {
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

    it("records when the last turn ended", async ({ world }) => {
      await world.start();
      const claimed = await world.claimNext();
      await world.clock.advance(70);
      await world.end(claimed);
      expect(world.store.agentCounts("main").lastEndedAt).toBe(world.clock.now());
    });

    it("marks the agent as failing from a turn that failed in its backend until a turn completes", async ({
      world,
    }) => {
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
}
