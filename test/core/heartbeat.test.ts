import { describe, expect, it, vi } from "vitest";
import { createEchoBackend } from "#backends/echo.ts";
import { A_BEAT, EVERY, MAIN, startBeating } from "./beating-core.ts";

describe("a heartbeat", () => {
  it("gives the queued events, the oldest first, to one turn of the agent's main session", async () => {
    await using core = await startBeating();
    await core.queueMany(3);
    await core.beat();
    const { turn } = await core.scripted.next();
    expect(core.handed()).toEqual([["event 1", "event 2", "event 3"]]);
    expect(turn).toMatchObject({ sessionId: MAIN, agent: "main", message: { outside: true } });
    expect(await core.turns.get(turn.turnId)).toMatchObject({ surface: "heartbeat", caller: "heartbeat" });
  });

  it("shows the agent each event with its id, time, sender, text and metadata", async () => {
    await using core = await startBeating();
    const first = await core.queue("The build\nis green.", { metadata: '{"source":"ci","n":1}', caller: "ci" });
    const second = await core.queue("The disk is full.");
    await core.beat();
    const { turn } = await core.scripted.next();
    expect(turn.message.text).toBe(
      `2 system events, the oldest first

1. ${first.eventId}, 2026-11-21T08:00:00.000Z, from ci
The build
is green.
metadata: {"source":"ci","n":1}

2. ${second.eventId}, 2026-11-21T08:00:00.000Z, from shared
The disk is full.`,
    );
  });

  it("starts when it is due or directly after another one, even if another agent's beat was due later", async () => {
    const agents = [
      { name: "main", heartbeatMs: EVERY },
      { name: "slow", heartbeatMs: 10 * EVERY },
    ];
    await using core = await startBeating({ agents });
    const looks = vi.spyOn(core.store, "dueBeats");
    for (let n = 0; n < 5; n++) await core.beat();
    expect(await core.logged("beat.ran")).toHaveLength(5);
    expect(looks).toHaveBeenCalledTimes(10);
  });

  it("is echoed completely by the echo agent", async () => {
    await using core = await startBeating({ backend: createEchoBackend() });
    const event = await core.queue("The build is green.", { metadata: '{"source":"ci"}' });
    await core.beat();
    const { turnId = "" } = await core.read(event);
    const { reply } = await core.turns.get(turnId);
    expect(reply).toContain("The build is green.");
    expect(reply).toContain('{"source":"ci"}');
  });

  it("marks its events as handled only after their turn has completed", async () => {
    await using core = await startBeating();
    const event = await core.queue("one");
    await core.beat();
    const run = await core.scripted.next();
    expect(await core.read(event)).toMatchObject({ status: "queued", turnId: run.turn.turnId });
    await core.end(run);
    expect(await core.read(event)).toMatchObject({ status: "handled", attempts: 0, endedAt: core.clock.now() });
  });

  it("calls no backend, starts no turn and reports nothing if no event waits", async () => {
    await using core = await startBeating();
    for (let n = 0; n < 5; n++) await core.beat();
    expect(await core.logged("beat.ran")).toHaveLength(5);
    expect(core.scripted.runs).toHaveLength(0);
    expect(await core.store.getSession(MAIN)).toBeUndefined();
    expect(await core.told()).toEqual([]);
  });

  it("gives a turn at most 100 events, and starts one turn after another", async () => {
    await using core = await startBeating();
    await core.queueMany(250);
    await core.beat();
    for (const size of [100, 100, 50]) {
      const run = await core.scripted.next();
      await core.clock.advance(1_000);
      expect(core.handed().at(-1)).toHaveLength(size);
      await core.end(run);
    }
    expect(core.handed().flat()).toEqual(Array.from({ length: 250 }, (_, n) => `event ${n + 1}`));
    expect(core.store.stats().eventsQueued).toBe(0);
  });

  it("gives a turn at most 64 KiB, and a larger event its own turn", async () => {
    await using core = await startBeating();
    const sizes = [30, 30, 30, 200, 1];
    for (const size of sizes) await core.queue("x".repeat(size * 1024));
    await core.beat();
    await core.endAll();
    expect(core.handed().map((texts) => texts.map((text) => text.length / 1024))).toEqual([[30, 30], [30], [200], [1]]);
  });

  it("counts metadata, and bytes instead of characters, towards the 64 KiB", async () => {
    await using core = await startBeating();
    await core.queue("é".repeat(20 * 1024));
    await core.queue("a", { metadata: JSON.stringify({ a: "é".repeat(20 * 1024) }) });
    await core.beat();
    await core.endAll();
    expect(core.handed()).toHaveLength(2);
  });

  it("leaves events that arrive while it runs to the next beat", async () => {
    await using core = await startBeating();
    await core.queueMany(101);
    await core.beat();
    const first = await core.scripted.next();
    await core.queue("late");
    await core.end(first);
    await core.end(await core.scripted.next());
    await core.clock.advance(EVERY - 1);
    expect(core.handed().flat()).not.toContain("late");
    await core.clock.advance(A_BEAT - EVERY + 1);
    expect(core.handed().at(-1)).toEqual(["late"]);
  });

  it("is followed by another at once if more events than a turn takes have arrived", async () => {
    await using core = await startBeating();
    await core.queue("first");
    await core.beat();
    const first = await core.scripted.next();
    await core.queueMany(101);
    await core.end(first);
    await core.endAll();
    expect(core.handed().map(({ length }) => length)).toEqual([1, 100, 1]);
    expect(core.nextAt()).toBeGreaterThanOrEqual(core.clock.now() + EVERY);
    expect(await core.logged("beat.ran")).toHaveLength(2);
  });

  it("is not followed at once if the rest fits one turn, however large it is", async () => {
    await using core = await startBeating();
    await core.queue("first");
    await core.beat();
    const first = await core.scripted.next();
    await core.queueMany(99);
    await core.queue("x".repeat(60 * 1024));
    await core.end(first);
    await core.endAll();
    expect(core.handed().map(({ length }) => length)).toEqual([1]);
  });

  it("is not followed at once for its own returned events", async () => {
    await using core = await startBeating();
    const event = await core.queue("first");
    await core.beat();
    const first = await core.scripted.next();
    await core.queueMany(101);
    first.fail(new Error("the agent is ill"));
    await core.settle();
    expect(await core.read(event)).toMatchObject({ status: "queued", attempts: 1 });
    expect(core.scripted.runs).toHaveLength(1);
    expect(core.nextAt()).toBeGreaterThanOrEqual(core.clock.now() + EVERY);
  });

  it("reports its turns and the time of the next beat on the gateway's stream", async () => {
    await using core = await startBeating();
    const events = await core.queueMany(101);
    await core.beat();
    await core.endAll();
    const turnIds = core.scripted.runs.map(({ turn }) => turn.turnId);
    const told = await core.told();
    expect(told.slice(0, -1).map((entry) => "eventId" in entry && [entry.name, entry.eventId])).toEqual(
      events.map(({ eventId }) => ["event.handled", eventId]),
    );
    expect(told.at(-1)).toMatchObject({ name: "heartbeat.ran", agentName: "main", events: 101, turnIds });
    expect(told.at(-1)).toHaveProperty("nextAt", core.nextAt());
  });

  it("is independent for each agent", async () => {
    await using core = await startBeating({ agents: [{ name: "main" }, { name: "other", heartbeatMs: 60_000 }] });
    await core.queue("for main");
    await core.queue("for other", { agent: "other" });
    await core.clock.advance(66_000);
    expect(core.handed()).toEqual([["for other"]]);
    await core.endAll();
    expect(core.scripted.runs[0]?.turn.sessionId).toBe("agent:other:main");
    await core.beat();
    expect(core.handed()).toEqual([["for other"], ["for main"]]);
  });

  it("waits behind other turns of the main session, and delays no other agent", async () => {
    await using core = await startBeating();
    await core.start({ session: MAIN, text: "asked before" });
    const asked = await core.scripted.next();
    await core.queue("event");
    await core.beat();
    await core.start({ session: "chat:b", text: "elsewhere" });
    expect(core.scripted.runs.map(({ turn }) => turn.message.text)).toEqual(["asked before", "elsewhere"]);
    await core.end(asked);
    expect(core.handed().at(-1)).toEqual(["event"]);
  });
});
