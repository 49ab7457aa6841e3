import { describe, expect, it } from "vitest";
import { agentView } from "#core/agents/agents.ts";
import { createManualClock } from "#test/harness/clock.ts";
import { A_BEAT, type BeatingCore, EVERY, startBeating } from "./beating-core.ts";

const HOUR = 3_600_000;
const DAY = 24 * HOUR;

async function beatsOf(core: BeatingCore): Promise<number> {
  return (await core.logged("beat.ran")).length;
}
/** The time until the next beat of an agent is due. */
function dueIn(core: BeatingCore, agent?: string): number {
  return (core.nextAt(agent) ?? Number.NaN) - core.clock.now();
}

describe("the beats of an agent", () => {
  it("follow each pause, up to a tenth of it later", async () => {
    const agents = Array.from({ length: 50 }, (_, n) => ({ name: `agent${n}` }));
    await using core = await startBeating({ agents });
    const pauses = agents.map(({ name }) => dueIn(core, name) / EVERY);
    expect(Math.min(...pauses)).toBeGreaterThanOrEqual(1);
    expect(Math.max(...pauses)).toBeLessThanOrEqual(1.1);
    expect(Math.max(...pauses) - Math.min(...pauses)).toBeGreaterThan(0.05);
    await core.clock.advance(EVERY - 1);
    expect(await beatsOf(core)).toBe(0);
    await core.clock.advance(A_BEAT - EVERY + 1);
    expect(await beatsOf(core)).toBe(50);
  });

  it("follow a pause after the end of the last beat, not after its start", async () => {
    await using core = await startBeating();
    await core.queue("long");
    await core.beat();
    const run = await core.scripted.next();
    await core.clock.advance(2 * EVERY);
    expect(await beatsOf(core)).toBe(0);
    await core.end(run);
    expect(dueIn(core)).toBeGreaterThanOrEqual(EVERY);
    expect(dueIn(core)).toBeLessThanOrEqual(A_BEAT);
  });

  it("are made up once after a time in which many were missed", async () => {
    await using core = await startBeating();
    await core.queue("one");
    await core.clock.block(20 * EVERY);
    await core.settle();
    await core.endAll();
    expect(await beatsOf(core)).toBe(1);
    expect(dueIn(core)).toBeGreaterThanOrEqual(EVERY);
  });

  it.each([HOUR, -HOUR, DAY, -DAY])("do not move when the wall clock jumps by %d ms", async (jump) => {
    await using core = await startBeating();
    await core.queue("one");
    core.clock.jump(jump);
    await core.clock.advance(EVERY - 1);
    expect(await beatsOf(core)).toBe(0);
    await core.clock.advance(A_BEAT - EVERY + 1);
    await core.endAll();
    expect(await beatsOf(core)).toBe(1);
    await core.clock.advance(EVERY - 1 - 0.1 * EVERY);
    expect(await beatsOf(core)).toBe(1);
  });

  it("may be 30 days apart, which is more than a timer allows", async () => {
    const clock = createManualClock();
    const waits: number[] = [];
    const after: typeof clock.after = (ms, fire) => {
      waits.push(ms);
      return clock.after(ms, fire);
    };
    await using core = await startBeating({
      agents: [{ name: "main", heartbeatMs: 30 * DAY }],
      clock: { ...clock, after },
      settings: { retentionMs: 1e15 },
    });
    expect(dueIn(core)).toBeGreaterThanOrEqual(30 * DAY);
    await core.queue("late");
    await core.queue("now", { agent: "main", mode: "now" });
    await core.settle();
    await core.endAll();
    expect(core.handed()).toEqual([["late", "now"]]);
    expect(dueIn(core)).toBeGreaterThanOrEqual(30 * DAY);
    expect(Math.max(...waits)).toBeLessThan(2 ** 31);
  });

  it("are shown by agent.status", async () => {
    await using core = await startBeating();
    const view = () => agentView(core, "main");
    expect(view().heartbeat).toEqual({ every: "30m", nextAt: new Date(core.nextAt() as number).toISOString() });
    await core.queueMany(3);
    expect(view().waitingEvents).toBe(3);
    await core.beat();
    const run = await core.scripted.next();
    const while_ = view();
    expect(while_.waitingEvents).toBe(0);
    expect(Date.parse(while_.heartbeat.nextAt as string)).toBeLessThanOrEqual(core.clock.now());
    await core.end(run);
    expect(view().heartbeat.nextAt).toBe(new Date(core.nextAt() as number).toISOString());
    expect(dueIn(core)).toBeGreaterThanOrEqual(EVERY);
  });
});

describe("mode: now", () => {
  it("starts the beat at once, and plans the next one from its end", async () => {
    await using core = await startBeating();
    await core.queue("plain");
    await core.clock.advance(60_000);
    await core.queue("now", { mode: "now" });
    await core.settle();
    expect(core.handed()).toEqual([["plain", "now"]]);
    await core.endAll();
    expect(dueIn(core)).toBeGreaterThanOrEqual(EVERY);
  });

  it("starts one beat for all events of one turn of the event loop", async () => {
    await using core = await startBeating();
    for (let n = 1; n <= 3; n++) core.queueFully({ text: `event ${n}`, mode: "now" });
    await core.settle();
    expect(core.handed()).toEqual([["event 1", "event 2", "event 3"]]);
  });

  it("starts one more beat directly after the running one", async () => {
    await using core = await startBeating();
    await core.queue("first", { mode: "now" });
    const run = await core.scripted.next();
    for (const text of ["second", "third"]) await core.queue(text, { mode: "now" });
    await core.settle();
    expect(core.handed()).toEqual([["first"]]);
    await core.end(run);
    expect(core.handed()).toEqual([["first"], ["second", "third"]]);
    await core.endAll();
    expect(await beatsOf(core)).toBe(2);
    expect(dueIn(core)).toBeGreaterThanOrEqual(EVERY);
  });
});

describe("an agent whose heartbeat is off", () => {
  const off = [{ name: "main", heartbeatMs: undefined }];

  it("has no beats of its own", async () => {
    await using core = await startBeating({ agents: off });
    expect(agentView(core, "main").heartbeat).toEqual({ every: "off", nextAt: null });
    await core.clock.advance(2 * EVERY);
    expect(await beatsOf(core)).toBe(0);
  });

  it("has a beat for an event of mode: now, and only that one", async () => {
    await using core = await startBeating({ agents: off });
    await core.queue("now", { mode: "now" });
    await core.settle();
    await core.endAll();
    expect(core.handed()).toEqual([["now"]]);
    expect(agentView(core, "main").heartbeat.nextAt).toBeNull();
    await core.clock.advance(2 * EVERY);
    expect(await beatsOf(core)).toBe(1);
  });
});

describe("a store that survives its gateway", () => {
  it("remembers a missed beat, which starts once at the next start", async () => {
    await using first = await startBeating();
    await first.queue("waited");
    await first.core.close();
    await first.clock.advance(5 * EVERY);
    await using second = await startBeating({ clock: first.clock, wrapStore: () => first.store });
    await second.settle();
    expect(second.handed()).toEqual([["waited"]]);
    await second.endAll();
    expect(await beatsOf(second)).toBe(1);
  });

  it("remembers the time of a planned beat", async () => {
    await using first = await startBeating();
    await first.clock.advance(EVERY - 60_000);
    const nextAt = first.nextAt();
    await first.core.close();
    await using second = await startBeating({ clock: first.clock, wrapStore: () => first.store });
    expect(second.nextAt()).toBe(nextAt);
  });
});
