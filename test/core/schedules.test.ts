import { describe, expect, it } from "vitest";
import { startScheduled, texts } from "./scheduled-core.ts";

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;

describe("a schedule", () => {
  it("starts a turn at each planned time of its cron expression", async () => {
    await using core = await startScheduled({ brief: { cron: "30 9 * * *", timeZone: "Europe/Berlin" } });
    expect(core.scripted.runs).toHaveLength(0);
    await core.pass(30 * MINUTE);
    expect(core.scripted.runs).toHaveLength(1);
    const { turn } = await core.scripted.next();
    expect(turn.message).toMatchObject({ text: "write the brief", outside: false });
    expect(turn.sessionId).toMatch(/^schedule:[0-9A-Z]{26}$/);
    expect(await core.turns.get(turn.turnId)).toMatchObject({ surface: "schedule", caller: "brief", agent: "main" });
    await core.endAll();
    core.clock.jump(24 * HOUR - MINUTE);
    await core.pass(2 * MINUTE);
    expect(core.scripted.runs).toHaveLength(2);
  });

  it("starts a turn after each interval, on a fixed grid", async () => {
    await using core = await startScheduled({ poll: { everyMs: 15 * MINUTE, sessionId: "schedule:poll" } });
    await core.pass(HOUR + MINUTE);
    expect(core.scripted.runs).toHaveLength(1);
    await core.endAll();
    await core.pass(14 * MINUTE);
    expect(core.scripted.runs).toHaveLength(2);
    expect(core.scripted.runs[1]?.turn.sessionId).toBe("schedule:poll");
  });

  it("is listed with its next five times and its last run", async () => {
    await using core = await startScheduled({ brief: { cron: "0 9 * * 1-5", timeZone: "Europe/Berlin" } });
    const [first] = await core.core.schedules.list();
    expect(first).toMatchObject({
      settings: { name: "brief", cron: "0 9 * * 1-5" },
      pausedAt: undefined,
      last: undefined,
    });
    expect(texts(first?.next ?? [])).toEqual([
      "2026-11-23T08:00:00.000Z",
      "2026-11-24T08:00:00.000Z",
      "2026-11-25T08:00:00.000Z",
      "2026-11-26T08:00:00.000Z",
      "2026-11-27T08:00:00.000Z",
    ]);
    core.clock.jump(48 * HOUR - MINUTE);
    await core.pass(2 * MINUTE);
    const { last, next } = await core.core.schedules.get("brief");
    expect(last).toMatchObject({
      outcome: "started",
      turnStatus: "running",
      requestedBy: undefined,
      reason: undefined,
    });
    expect(texts([last?.plannedAt ?? 0, ...next.slice(0, 1)])).toEqual([
      "2026-11-23T08:00:00.000Z",
      "2026-11-24T08:00:00.000Z",
    ]);
  });

  it("records each run as a delivery, in the gateway's stream, in the log and in the metrics", async () => {
    await using core = await startScheduled({ brief: { everyMs: HOUR } });
    await core.pass(HOUR);
    const [delivery] = await core.deliveries();
    expect(delivery).toMatchObject({
      operation: "schedules.fire",
      path: "schedules/brief",
      caller: "brief",
      outcome: "running",
    });
    expect(delivery?.agent).toBe("main");
    const { timeline } = await core.core.deliveries.get(delivery?.deliveryId ?? "");
    expect(timeline.map(({ name }) => name)).toEqual(["schedule.fired", "turn.queued", "turn.started"]);
    expect(timeline[0]?.detail).toEqual({ planned_at: "2026-11-21T09:00:00.000Z" });
    const turnId = delivery?.turnId;
    expect(await core.told()).toMatchObject([
      {
        name: "schedule.ran",
        scheduleName: "brief",
        outcome: "started",
        turnId,
        reason: null,
        plannedAt: Date.UTC(2026, 10, 21, 9),
      },
    ]);
    expect(await core.logged("schedule.ran")).toMatchObject([{ schedule: "brief", outcome: "started", turnId }]);
    expect(core.figures()).toContain('gateway_schedule_runs_total{schedule="brief",outcome="started"} 1');
  });
});

describe("a requested run", () => {
  it("starts a turn now, and leaves the plan as it is", async () => {
    await using core = await startScheduled({ brief: { cron: "0 9 * * *" } });
    const before = await core.core.schedules.get("brief");
    const { turn, replayed } = await core.core.schedules.run("brief", { caller: "ops" });
    expect(replayed).toBe(false);
    expect(turn).toMatchObject({ surface: "schedule", caller: "brief", status: "running" });
    const { last, next } = await core.core.schedules.get("brief");
    expect(last).toMatchObject({
      outcome: "started",
      requestedBy: "ops",
      turnId: turn.turnId,
      deliveryId: turn.deliveryId,
    });
    expect(next).toEqual(before.next);
    const { delivery, timeline } = await core.core.deliveries.get(turn.deliveryId ?? "");
    expect(delivery).toMatchObject({ surface: "schedule", operation: "schedules.run" });
    expect(timeline[0]).toMatchObject({ name: "schedule.requested", detail: { by: "ops" } });
  });

  it("is not repeated with the same idempotency key", async () => {
    await using core = await startScheduled({ brief: { cron: "0 9 * * *" } });
    const request = { caller: "ops", idempotency: { key: "k", hash: "h" } };
    const first = await core.core.schedules.run("brief", request);
    const second = await core.core.schedules.run("brief", request);
    expect(second).toMatchObject({ replayed: true, turn: { turnId: first.turn.turnId } });
    expect(await core.deliveries()).toHaveLength(1);
  });

  it("refuses an unknown name, and names the schedules", async () => {
    await using core = await startScheduled({ brief: { cron: "0 9 * * *" } });
    await expect(core.core.schedules.run("breif", { caller: "ops" })).rejects.toMatchObject({
      name: "schedule-not-found",
      detail: "No schedule is named `breif`. Did you mean `brief`?",
    });
  });
});

describe("a paused schedule", () => {
  it("starts no turns and misses none, and continues with the next time after it is resumed", async () => {
    await using core = await startScheduled({ poll: { everyMs: HOUR } });
    const paused = await core.core.schedules.setPaused("poll", true, { caller: "ops" });
    expect(paused).toMatchObject({ pausedAt: core.clock.now(), next: [] });
    await core.pass(3.5 * HOUR);
    expect(await core.deliveries()).toEqual([]);
    const { next } = await core.core.schedules.setPaused("poll", false, { caller: "ops" });
    expect(texts(next).slice(0, 2)).toEqual(["2026-11-21T12:00:00.000Z", "2026-11-21T13:00:00.000Z"]);
    await core.pass(HOUR / 2);
    expect(await core.outcomes()).toEqual(["accepted"]);
    expect((await core.told()).map(({ name }) => name)).toEqual([
      "schedule.paused",
      "schedule.resumed",
      "schedule.ran",
    ]);
    expect(await core.logged("schedule.paused")).toMatchObject([{ schedule: "poll", caller: "ops" }]);
  });

  it("can be run at a caller's request", async () => {
    await using core = await startScheduled({ poll: { everyMs: HOUR } });
    await core.core.schedules.setPaused("poll", true);
    await core.core.schedules.run("poll", { caller: "ops" });
    expect(core.scripted.runs).toHaveLength(1);
    expect(await core.core.schedules.get("poll")).toMatchObject({ next: [], last: { outcome: "started" } });
  });
});
