import { describe, expect, it } from "vitest";
import { agentView } from "#core/agents/agents.ts";
import type { SystemEvent } from "#store/store.ts";
import { type BeatingCore, EVERY, startBeating } from "./beating-core.ts";

const HOUR = 3_600_000;
/** The time until the next beat of an agent is due. */
function dueIn(core: BeatingCore, agent?: string): number {
  return (core.nextAt(agent) ?? Number.NaN) - core.clock.now();
}

describe("a reload", () => {
  const reload = (core: BeatingCore, ...agents: { name: string; heartbeatMs?: number | undefined }[]) =>
    core.core.reconfigure(core.settingsWith(agents.map((agent) => ({ deadlineMs: 1e9, ...agent }))));

  it.each([60_000, 4 * HOUR])("that changes the pause to %d ms takes effect at once", async (heartbeatMs) => {
    await using core = await startBeating();
    await core.queue("one");
    await reload(core, { name: "main", heartbeatMs });
    expect(dueIn(core)).toBeGreaterThanOrEqual(heartbeatMs);
    await core.clock.advance(heartbeatMs - 1);
    expect(core.handed()).toEqual([]);
    await core.clock.advance(heartbeatMs * 0.1 + 2);
    expect(core.handed()).toEqual([["one"]]);
  });

  it("that changes something else does not move a beat", async () => {
    await using core = await startBeating();
    const before = core.nextAt();
    await core.clock.advance(60_000);
    await core.core.reconfigure(core.settingsWith([{ name: "main", description: "New." }]));
    expect(core.nextAt()).toBe(before);
  });

  it("that turns the heartbeat off leaves events in the queue, for an event of mode: now or until the heartbeat is on again", async () => {
    await using core = await startBeating();
    await core.queue("waits");
    await reload(core, { name: "main", heartbeatMs: undefined });
    await core.clock.advance(2 * EVERY);
    expect(core.handed()).toEqual([]);
    expect(agentView(core, "main")).toMatchObject({ waitingEvents: 1, heartbeat: { every: "off", nextAt: null } });
    await reload(core, { name: "main", heartbeatMs: EVERY });
    await core.beat();
    expect(core.handed()).toEqual([["waits"]]);
  });

  it("that turns the heartbeat off loses no event of mode: now", async () => {
    await using core = await startBeating();
    core.queueFully({ text: "now", mode: "now" });
    await reload(core, { name: "main", heartbeatMs: undefined });
    await core.settle();
    expect(core.handed()).toEqual([["now"]]);
  });

  it("during a beat takes effect for the next one", async () => {
    await using core = await startBeating();
    await core.queue("one");
    await core.beat();
    await reload(core, { name: "main", heartbeatMs: 60_000 });
    await core.end(await core.scripted.next());
    expect(dueIn(core)).toBeLessThanOrEqual(66_000);
    await core.queue("two");
    await core.clock.advance(66_001);
    await reload(core, { name: "main", heartbeatMs: undefined });
    await core.end(await core.scripted.next());
    expect(core.nextAt()).toBeUndefined();
  });

  it("while the end of a beat is being stored takes effect, too", async () => {
    let keepEnd = () => {};
    await using core = await startBeating({
      wrapStore: (store) => ({
        startBeat: async (...of) => {
          await new Promise<void>((resolve) => (keepEnd = resolve));
          return await store.startBeat(...of);
        },
      }),
    });
    await core.beat();
    await reload(core, { name: "main", heartbeatMs: 4 * HOUR });
    keepEnd();
    await core.settle();
    expect(dueIn(core)).toBeGreaterThanOrEqual(4 * HOUR);
  });

  it("that adds an agent starts its beats", async () => {
    await using core = await startBeating();
    await reload(core, { name: "main", heartbeatMs: EVERY }, { name: "new", heartbeatMs: 60_000 });
    await core.queue("hello", { agent: "new" });
    await core.clock.advance(66_001);
    expect(core.handed()).toEqual([["hello"]]);
  });

  it("that removes an agent makes its events dead", async () => {
    await using core = await startBeating({ agents: [{ name: "main" }, { name: "gone" }] });
    const events = await core.queueMany(250, { agent: "gone" });
    const kept = await core.queue("stays");
    await reload(core, { name: "main", heartbeatMs: EVERY });
    for (const event of events) {
      const reason = "the agent gone was removed from the configuration";
      expect(await core.read(event)).toMatchObject({ status: "dead", attempts: 0, reason });
    }
    expect(await core.read(kept)).toMatchObject({ status: "queued" });
    const dead = (await core.told()).map((entry) => "eventId" in entry && [entry.name, entry.eventId]);
    expect(dead).toEqual(events.map(({ eventId }) => ["event.dead", eventId]));
    expect(await core.logged("events.given-up")).toMatchObject([{ agent: "gone", count: 250 }]);
    await core.clock.advance(2 * EVERY);
    expect(core.handed()).toEqual([["stays"]]);
  });

  it.each(["completed", "failed"])(
    "lets a turn of a removed agent run; the events end with it when it %s",
    async (end) => {
      await using core = await startBeating({ agents: [{ name: "main" }, { name: "gone" }] });
      const taken = await core.queueMany(100, { agent: "gone" });
      const waiting = await core.queue("not taken yet", { agent: "gone" });
      await core.beat();
      const run = await core.scripted.next();
      await reload(core, { name: "main", heartbeatMs: EVERY });
      expect(await core.read(waiting)).toMatchObject({ status: "dead" });
      expect(await core.read(taken[0] as SystemEvent)).toMatchObject({ status: "queued" });
      if (end === "failed") run.fail(new Error("broken"));
      await core.end(run);
      await core.clock.advance(2_000);
      for (const event of taken) {
        expect(await core.read(event)).toMatchObject({ status: end === "failed" ? "dead" : "handled" });
      }
      expect(core.scripted.runs).toHaveLength(1);
      expect(core.nextAt("gone")).toBeUndefined();
      expect(await core.logged("unexpected.error")).toEqual([]);
    },
  );

  it("that adds a removed agent again starts its beats again", async () => {
    await using core = await startBeating({ agents: [{ name: "main" }, { name: "gone" }] });
    const main = { name: "main", heartbeatMs: EVERY };
    await reload(core, main);
    await reload(core, main, { name: "gone", heartbeatMs: EVERY });
    await core.queue("again", { agent: "gone" });
    await core.beat();
    expect(core.handed()).toEqual([["again"]]);
  });
});
