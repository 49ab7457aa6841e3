import { describe, expect } from "vitest";
import type { GatewayNews } from "#store/store.ts";
import { testsOn } from "../tests-on.ts";
import { DAY, type Engine, openWorld, type World } from "../world.ts";

const NEWS: GatewayNews[] = [
  { name: "event.queued", eventId: "evt_1", agentName: "main" },
  { name: "event.handled", eventId: "evt_1", agentName: "main", turnId: "turn_1" },
  { name: "event.dead", eventId: "evt_2", agentName: "main", attempts: 3, reason: "it broke" },
  { name: "heartbeat.ran", agentName: "main", events: 2, turnIds: ["turn_1"], nextAt: 7 },
  { name: "heartbeat.ran", agentName: "main", events: 0, turnIds: [], nextAt: null },
  { name: "agent.paused", agentName: "main" },
  { name: "agent.resumed", agentName: "main" },
  { name: "agent.reloaded", agentName: "main", changed: ["agents.main.model"] },
  { name: "system.reloaded", changed: [], needsRestart: ["gateway.port"] },
  {
    name: "health.changed",
    nodeId: "node_1",
    status: "degraded",
    parts: [{ name: "store", status: "degraded", detail: "It does not answer." }],
  },
];

function append(world: World, n = 0, keep = 1_000) {
  return world.store.appendGatewayEntry(NEWS[n % NEWS.length] as GatewayNews, { now: world.clock.now(), keep });
}

function read(world: World, after = 0, limit = 1_000) {
  return world.store.readGatewayEntries({ after, limit });
}
async function seqs(world: World, after?: number, limit?: number) {
  return (await read(world, after, limit)).entries.map(({ seq }) => seq);
}

export function gatewayStreamTests(engine: Engine): void {
  const it = testsOn(engine);
  describe("the gateway's stream", () => {
    it("stores every kind of entry unchanged, with its time and a seq that increases by one", async ({ world }) => {
      const at = world.clock.now();
      for (const n of NEWS.keys()) expect(await append(world, n)).toEqual({ seq: n + 1, at, ...NEWS[n] });
      const entries = NEWS.map((news, n) => ({ seq: n + 1, at, ...news }));
      expect(await read(world)).toEqual({ entries, first: 1, last: NEWS.length });
    });

    it("reads entries after a seq, in order, up to a limit", async ({ world }) => {
      for (let n = 0; n < 10; n++) await append(world, n);
      expect(await seqs(world, 3, 4)).toEqual([4, 5, 6, 7]);
      expect(await seqs(world, 9)).toEqual([10]);
      expect(await seqs(world, 10)).toEqual([]);
      expect(await seqs(world, 99)).toEqual([]);
      expect(await seqs(world, 0, 0)).toEqual([]);
    });

    it("stores the newest entries, and returns the oldest stored seq", async ({ world }) => {
      for (let n = 1; n <= 100; n++) {
        await append(world, n, 10);
        expect(await seqs(world, n - 1)).toEqual([n]);
      }
      // As many at once as are stored.
      for (let n = 101; n < 2_500; n += 10) {
        await Promise.all(Array.from({ length: 10 }, (_, m) => append(world, n + m, 10)));
        expect(await seqs(world, n - 1)).toEqual(Array.from({ length: 10 }, (_, m) => n + m));
      }
      expect(await read(world, 0, 0)).toMatchObject({ first: 2_491, last: 2_500 });
      expect(await seqs(world, 2_400, 3)).toEqual([2_491, 2_492, 2_493]);
      expect(await seqs(world, 2_495)).toEqual([2_496, 2_497, 2_498, 2_499, 2_500]);
    });

    it("erases entries after their retention, and the sequence numbers continue", async ({ world }) => {
      await append(world);
      await append(world);
      await world.clock.advance(DAY);
      await append(world);
      await world.sweep({ gatewayBefore: world.clock.now() - DAY });
      expect(await seqs(world)).toEqual([1, 2, 3]);
      await world.sweep({ gatewayBefore: world.clock.now() - DAY + 1 });
      expect(await read(world)).toMatchObject({ entries: [{ seq: 3 }], first: 3, last: 3 });
      await world.clock.advance(DAY);
      await world.sweep({ gatewayBefore: world.clock.now() });
      expect(await read(world)).toEqual({ entries: [], first: 4, last: 3 });
      expect((await append(world)).seq).toBe(4);
      expect(await seqs(world)).toEqual([4]);
    });

    it("notifies its watchers of each entry once, in order", async ({ world }) => {
      await Promise.all([...NEWS.keys()].map((n) => append(world, n)));
      await world.hears((what) => what.kind === "gateway" && what.entries.at(-1)?.seq === NEWS.length);
      const told = world.told.flatMap((what) => (what.kind === "gateway" ? what.entries : []));
      expect(told).toEqual((await read(world)).entries);
    });

    it("belongs to no session: it has its own epoch, as text", async ({ world }) => {
      expect(world.store.epoch).toMatch(/^[A-Za-z0-9_-]{1,40}$/);
      await using other = await openWorld(engine);
      expect(other.store.epoch).not.toBe(world.store.epoch);
    });
  });
}
