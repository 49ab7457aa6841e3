import { describe, expect, it } from "vitest";
import { GatewayError } from "#kit/errors.ts";
import { MAIN, startBeating } from "./beating-core.ts";
import { AMPLE } from "./start-core.ts";

const NO_ROOM = new GatewayError("gateway-busy", "no room", { retryAfterMs: 1_000 });

describe("a turn that cannot be started now", () => {
  it("is started when its session has room; health names the agent and the reason", async () => {
    const limits = { ...AMPLE, store: { ...AMPLE.store, turnsPerSession: 1 } };
    await using core = await startBeating({ settings: { limits } });
    for (const text of ["runs", "waits"]) await core.start({ session: MAIN, text });
    const events = await core.queueMany(3);
    await core.beat();
    await core.clock.advance(60_000);
    const part = (await core.core.health.read()).parts.find(({ name }) => name === "agents.main");
    expect(part).toMatchObject({ status: "degraded", detail: expect.stringContaining("session-busy") });
    expect((await core.logged("beat.delayed")).length).toBeGreaterThan(2);
    await core.end(await core.scripted.next());
    await core.clock.advance(30_000);
    await core.endAll();
    expect(core.handed().at(-1)).toEqual(["event 1", "event 2", "event 3"]);
    expect(await core.statusesOf(events)).toEqual(["handled", "handled", "handled"]);
    expect(await core.core.health.read()).toMatchObject({ status: "ok" });
  });

  it.each(["gateway-busy", "store-unavailable", "store-full"] as const)("is retried after %s", async (name) => {
    let refusals = 4;
    await using core = await startBeating({
      wrapStore: (store) => ({
        startBeat: (order) => {
          if (refusals-- > 0) throw new GatewayError(name);
          return store.startBeat(order);
        },
      }),
    });
    await core.queueMany(150);
    await core.beat();
    await core.clock.advance(20_000);
    await core.endAll();
    expect(core.handed().map(({ length }) => length)).toEqual([100, 50]);
    expect(await core.logged("beat.ran")).toMatchObject([{ events: 150, turns: 2, returned: 0 }]);
  });

  it("waits longer before each retry, up to half a minute", async () => {
    await using core = await startBeating({
      wrapStore: () => ({ startBeat: () => Promise.reject(NO_ROOM) }),
    });
    await core.queue("one");
    await core.beat();
    await core.clock.advance(600_000);
    const pauses = (await core.logged("beat.delayed")).map(({ delayMs }) => delayMs as number);
    expect(pauses[0]).toBeLessThanOrEqual(500);
    expect(pauses[4]).toBeGreaterThan(pauses[0] as number);
    expect(Math.max(...pauses)).toBeLessThanOrEqual(30_000);
    expect(pauses.length).toBeGreaterThan(20);
  });

  it("waits only briefly again after an earlier one was started", async () => {
    let calls = 0;
    await using core = await startBeating({
      wrapStore: (store) => ({
        startBeat: (order) => {
          // The sixth is accepted, and the pause after a later refusal is shorter than the one after the fifth.
          if (++calls !== 6) throw NO_ROOM;
          return store.startBeat(order);
        },
      }),
    });
    await core.queueMany(150);
    await core.beat();
    await core.clock.advance(60_000);
    await core.endAll();
    const pauses = (await core.logged("beat.delayed")).map(({ delayMs }) => delayMs as number);
    expect(pauses[4]).toBeGreaterThan(500);
    expect(pauses[5]).toBeLessThanOrEqual(500);
  });

  it("is not started twice if the store stored it without an answer", async () => {
    let isDown = true;
    await using core = await startBeating({
      wrapStore: (store) => ({
        startBeat: async (order) => {
          const started = await store.startBeat({ ...order, turn: { ...order.turn, claim: undefined } });
          if (!isDown) return started;
          isDown = false;
          throw new GatewayError("store-unavailable");
        },
      }),
    });
    const events = await core.queueMany(150);
    await core.beat();
    await core.clock.advance(10_000);
    await core.endAll();
    expect(core.handed().flat()).toEqual(events.map(({ text }) => text));
    expect(new Set(await core.statusesOf(events))).toEqual(new Set(["handled"]));
  });

  it("has its session compacted if the session is full", async () => {
    const limits = { ...AMPLE, store: { ...AMPLE.store, messagesPerSession: 50 } };
    await using core = await startBeating({ settings: { limits, compactAt: 1_000_000 } });
    for (let n = 0; n < 60; n++) {
      await core.queue(`event ${n}`, { mode: "now" });
      await core.settle();
      await core.endAll();
    }
    expect(core.handed().flat()).toHaveLength(60);
    expect(await core.logged("beat.delayed")).toEqual([]);
    expect((await core.logged("session.compacted")).length).toBeGreaterThan(0);
  });

  it("waits for a compaction of its session that another gateway has requested", async () => {
    const limits = { ...AMPLE, store: { ...AMPLE.store, messagesPerSession: 50 } };
    let mayCompact = false;
    await using core = await startBeating({
      settings: { limits, compactAt: 1_000_000 },
      wrapStore: (store) => ({
        claimTurns: (request) =>
          store.claimTurns({
            ...request,
            freeOf: (agent, lane) => (lane === "compact" && !mayCompact ? 0 : request.freeOf(agent, lane)),
          }),
      }),
    });
    for (let n = 0; n < 25; n++) {
      await core.queue("fills", { mode: "now" });
      await core.settle();
      await core.endAll();
    }
    const [now, task] = [core.clock.now(), { kind: "compact", keep: 20, keepTokens: undefined }] as const;
    const by = { surface: "heartbeat", caller: "compaction" } as const;
    await core.store.startCompaction({ now, turnId: "cmp_other", sessionId: MAIN, ...by, task, limits: limits.store });
    const event = await core.queue("waits", { mode: "now" });
    await core.clock.advance(60_000);
    const delays = await core.logged("beat.delayed");
    expect(delays.length).toBeGreaterThan(2);
    expect(new Set(delays.map(({ reason }) => reason))).toEqual(new Set(["session-full"]));
    mayCompact = true;
    // Notifies the runner.
    for (const paused of [true, false]) await core.store.setPaused("main", { paused, now, streamKeep: 100 });
    await core.clock.advance(30_000);
    await core.endAll();
    expect(await core.read(event)).toMatchObject({ status: "handled", attempts: 0 });
    expect(await core.logged("session.compacted")).toHaveLength(1);
    expect(await core.logged("compaction.failed")).toEqual([]);
  });

  it("leaves its events in the queue if no session is ever compacted, until the session has room", async () => {
    const limits = { ...AMPLE, store: { ...AMPLE.store, messagesPerSession: 2 } };
    await using core = await startBeating({ settings: { limits } });
    await core.queue("first", { mode: "now" });
    await core.settle();
    await core.endAll();
    const event = await core.queue("second", { mode: "now" });
    await core.clock.advance(300_000);
    expect(core.handed()).toEqual([["first"]]);
    await core.store.deleteSession(MAIN, core.clock.now());
    await core.clock.advance(30_000);
    await core.endAll();
    expect(await core.read(event)).toMatchObject({ status: "handled", attempts: 0 });
  });

  it("waits until its session belongs to its agent", async () => {
    await using core = await startBeating({ agents: [{ name: "main" }, { name: "other" }] });
    await core.start({ session: MAIN, agent: "other" });
    await core.end(await core.scripted.next());
    const event = await core.queue("one", { mode: "now" });
    await core.clock.advance(60_000);
    expect(await core.logged("unexpected.error")).toEqual([]);
    await core.store.deleteSession(MAIN, core.clock.now());
    await core.clock.advance(30_000);
    await core.endAll();
    expect(await core.read(event)).toMatchObject({ status: "handled", attempts: 0 });
  });

  it("is retried within a minute after an unexpected error", async () => {
    let failures = 1;
    await using core = await startBeating({
      wrapStore: (store) => ({
        startBeat: (order) => {
          if (failures-- > 0) throw new TypeError("a bug");
          return store.startBeat(order);
        },
      }),
    });
    await core.queue("one");
    await core.beat();
    expect(await core.logged("unexpected.error")).toMatchObject([{ where: "heartbeat" }]);
    await core.clock.advance(60_000);
    expect(core.handed()).toEqual([["one"]]);
  });
});
