import { describe, expect, it } from "vitest";
import { NO_POLICY } from "#store/policy.ts";
import { createManualClock, START } from "#test/harness/clock.ts";
import { startScheduled, texts } from "./scheduled-core.ts";

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

/** The next planned time of the only schedule. */
async function nextOf(core: Awaited<ReturnType<typeof startScheduled>>): Promise<string | undefined> {
  const [schedule] = await core.core.schedules.list();
  return texts(schedule?.next ?? [])[0];
}

describe("a planned time that comes while the turn of the last run is open", () => {
  it("is skipped, with the reason", async () => {
    await using core = await startScheduled({ poll: { everyMs: 15 * MINUTE } });
    await core.pass(30 * MINUTE);
    expect(await core.outcomes()).toEqual(["accepted", "skipped"]);
    const [first, second] = await core.deliveries();
    const { last } = await core.core.schedules.get("poll");
    const reason = `overlap: The turn ${first?.turnId} of the last run has not ended.`;
    expect(last).toMatchObject({ outcome: "skipped", reason, turnId: undefined, deliveryId: second?.deliveryId });
    expect((await core.told()).at(-1)).toMatchObject({ outcome: "skipped", reason, turnId: null });
    expect(second).toMatchObject({ outcome: "skipped", agent: "main", turnId: undefined });
    const { timeline } = await core.core.deliveries.get(second?.deliveryId ?? "");
    expect(timeline).toMatchObject([
      { name: "schedule.skipped", detail: { planned_at: "2026-11-21T08:30:00.000Z", reason: "overlap" } },
    ]);
    await core.endAll();
    await core.pass(15 * MINUTE);
    expect(await core.outcomes()).toEqual(["accepted", "skipped", "accepted"]);
    expect(core.figures()).toContain('gateway_schedule_runs_total{schedule="poll",outcome="skipped"} 1');
  });

  it("with `queue` starts a turn that waits for it", async () => {
    await using core = await startScheduled({
      poll: { everyMs: 15 * MINUTE, overlap: "queue", sessionId: "schedule:poll" },
    });
    await core.pass(30 * MINUTE);
    expect(await core.outcomes()).toEqual(["accepted", "accepted"]);
    expect(core.scripted.runs).toHaveLength(1);
    await core.endAll();
    expect(core.scripted.runs).toHaveLength(2);
  });

  it("runs after a requested run that has ended", async () => {
    await using core = await startScheduled({ poll: { everyMs: 15 * MINUTE } });
    await core.core.schedules.run("poll", { caller: "ops" });
    await core.endAll();
    await core.pass(15 * MINUTE);
    expect(await core.outcomes()).toEqual(["accepted", "accepted"]);
  });
});

describe("a turn that is refused at its planned time", () => {
  it("is skipped with the reason, and the next planned time comes as planned", async () => {
    let isFull = true;
    const { GatewayError } = await import("#kit/errors.ts");
    const admit = () => {
      if (isFull) throw new GatewayError("gateway-busy", "Memory is low.");
    };
    await using core = await startScheduled({ poll: { everyMs: HOUR } }, { admit });
    await core.pass(HOUR);
    expect((await core.core.schedules.get("poll")).last).toMatchObject({ reason: "gateway-busy: Memory is low." });
    isFull = false;
    await core.pass(HOUR);
    expect(await core.outcomes()).toEqual(["skipped", "accepted"]);
  });

  it("is skipped if a budget for schedules is spent", async () => {
    const budget = { name: "daily", per: "day", timeZone: "UTC", agents: undefined, keys: undefined } as const;
    const rule = { ...budget, surfaces: ["schedule"], tokens: 1, cost: undefined, warnAt: 0.8, ...REFUSES } as const;
    const settings = { policy: { ...NO_POLICY, budgets: [rule] } };
    await using core = await startScheduled({ poll: { everyMs: HOUR } }, { settings });
    await core.pass(HOUR);
    core.scripted.runs[0]?.use(5, 5);
    await core.endAll();
    await core.pass(HOUR);
    const { last } = await core.core.schedules.get("poll");
    expect(last).toMatchObject({ outcome: "skipped", reason: expect.stringMatching(/^budget-exceeded: .*daily/) });
    // Other surfaces have no budget.
    await core.start({ text: "hello" });
    expect(core.scripted.runs).toHaveLength(2);
  });

  it("is skipped if its skill is gone", async () => {
    await using core = await startScheduled({ poll: { everyMs: HOUR, skillId: "digest", params: { n: 1 } } });
    await core.pass(HOUR);
    expect((await core.core.schedules.get("poll")).last).toMatchObject({
      outcome: "skipped",
      reason: expect.stringMatching(/^skill-not-found: /),
    });
  });

  it("is left for the next start if the gateway stops", async () => {
    const { GatewayError } = await import("#kit/errors.ts");
    let isStopping = true;
    const admit = () => {
      if (isStopping) throw new GatewayError("shutting-down");
    };
    await using core = await startScheduled({ poll: { everyMs: HOUR } }, { admit });
    await core.pass(HOUR);
    expect(await core.deliveries()).toEqual([]);
    isStopping = false;
    await core.pass(2_000);
    expect(await core.outcomes()).toEqual(["accepted"]);
  });
});

describe("planned times that passed while no gateway ran", () => {
  it("are recorded once, and no turn starts", async () => {
    await using core = await startScheduled({ brief: { cron: "0 9 * * *" } });
    core.clock.jump(3 * DAY + 2 * HOUR);
    await core.pass(MINUTE);
    expect(await core.outcomes()).toEqual(["missed"]);
    const [delivery] = await core.deliveries();
    const { timeline } = await core.core.deliveries.get(delivery?.deliveryId ?? "");
    expect(timeline).toMatchObject([
      {
        name: "schedule.missed",
        detail: {
          planned_at: "2026-11-24T09:00:00.000Z",
          count: 4,
          first_at: "2026-11-21T09:00:00.000Z",
          last_at: "2026-11-24T09:00:00.000Z",
        },
      },
    ]);
    expect((await core.core.schedules.get("brief")).last).toMatchObject({
      outcome: "missed",
      reason:
        "4 planned times from 2026-11-21T09:00:00.000Z to 2026-11-24T09:00:00.000Z passed while no gateway could start a run: none ran, the store was unavailable, or a clock was wrong.",
    });
    expect(await nextOf(core)).toBe("2026-11-25T09:00:00.000Z");
    expect(await core.logged("schedule.ran")).toMatchObject([{ level: "warn", outcome: "missed" }]);
  });

  it.each([
    [30 * MINUTE, ["missed", "accepted"]],
    [90 * MINUTE, ["missed"]],
  ])("with `once` start one run if the last is not too old: %d ms", async (late, outcomes) => {
    await using core = await startScheduled({ brief: { cron: "0 9 * * *", missed: "once" } });
    core.clock.jump(2 * DAY + HOUR + late - MINUTE);
    await core.pass(MINUTE);
    expect(await core.outcomes()).toEqual(outcomes);
    expect(core.scripted.runs).toHaveLength(outcomes.length - 1);
    expect((await core.core.schedules.get("brief")).last?.plannedAt).toBe(START + 2 * DAY + HOUR);
    expect(await nextOf(core)).toBe("2026-11-24T09:00:00.000Z");
  });

  it("are counted up to a thousand", async () => {
    await using core = await startScheduled({ poll: { everyMs: 1_000 } });
    core.clock.jump(HOUR);
    await core.pass(1_000);
    const last = (await core.told()).find((entry) => "outcome" in entry && entry.outcome === "missed");
    expect(last).toMatchObject({ reason: expect.stringMatching(/^At least 1000 planned times from .*T08:00:01/) });
  });

  it("do not delay the one that is on time", async () => {
    await using core = await startScheduled({ poll: { everyMs: HOUR, missed: "once" } });
    core.clock.jump(5 * HOUR - 30_000);
    await core.pass(MINUTE);
    expect(await core.outcomes()).toEqual(["missed", "accepted"]);
    expect((await core.core.schedules.get("poll")).last).toMatchObject({
      outcome: "started",
      plannedAt: START + 5 * HOUR,
    });
  });
});

describe("a wall clock that is set back", () => {
  it("by less than an interval repeats no planned time", async () => {
    await using core = await startScheduled({ brief: { cron: "0 9 * * *" } });
    await core.pass(HOUR + MINUTE);
    core.clock.jump(-HOUR / 2);
    await core.pass(HOUR);
    expect(await core.outcomes()).toEqual(["accepted"]);
    expect(await nextOf(core)).toBe("2026-11-22T09:00:00.000Z");
  });

  it("by years neither stops a schedule nor starts many runs", async () => {
    await using core = await startScheduled({ poll: { everyMs: 15 * MINUTE } });
    await core.pass(15 * MINUTE);
    await core.endAll();
    core.clock.jump(400 * DAY + 7 * MINUTE);
    await core.pass(MINUTE);
    expect(await core.outcomes()).toEqual(["accepted", "missed"]);
    core.clock.jump(-400 * DAY - 7 * MINUTE);
    await core.pass(31 * MINUTE);
    await core.endAll();
    const outcomes = await core.outcomes();
    expect(outcomes.slice(2, 3)).toEqual(["accepted"]);
    expect(outcomes.length).toBeLessThanOrEqual(4);
  });

  it("before the first run does not silence a schedule", async () => {
    await using core = await startScheduled({ brief: { cron: "0 9 * * *" } });
    core.clock.jump(-10 * DAY);
    await core.pass(2 * MINUTE);
    expect(await nextOf(core)).toBe("2026-11-11T09:00:00.000Z");
  });
});

describe("an interval", () => {
  it("begins at a whole second", async () => {
    const clock = createManualClock();
    clock.jump(123);
    await using core = await startScheduled({ poll: { everyMs: HOUR } }, { clock });
    expect(await nextOf(core)).toBe("2026-11-21T09:00:00.000Z");
  });
});

describe("a reload", () => {
  it("keeps the planned times of a schedule that stays", async () => {
    await using core = await startScheduled({ poll: { everyMs: HOUR } });
    await core.pass(40 * MINUTE);
    await core.reload({ poll: { everyMs: HOUR, message: "another" }, other: { everyMs: DAY } });
    expect(await nextOf(core)).toBe("2026-11-21T09:00:00.000Z");
    await core.pass(20 * MINUTE);
    expect(core.scripted.runs[0]?.turn.message.text).toBe("another");
  });

  it("plans a schedule again whose times changed", async () => {
    await using core = await startScheduled({ poll: { everyMs: HOUR } });
    await core.pass(40 * MINUTE);
    await core.reload({ poll: { everyMs: 10 * MINUTE } });
    expect(await nextOf(core)).toBe("2026-11-21T08:50:00.000Z");
    await core.reload({ poll: { cron: "0 10 * * *", timeZone: "Europe/Berlin" } });
    expect(await nextOf(core)).toBe("2026-11-21T09:00:00.000Z");
    await core.reload({ poll: { cron: "0 10 * * *", timeZone: "Asia/Tokyo" } });
    expect(await nextOf(core)).toBe("2026-11-22T01:00:00.000Z");
  });

  it("ends a removed schedule, and misses nothing when it is added again", async () => {
    await using core = await startScheduled({ poll: { everyMs: HOUR, missed: "once" } });
    await core.reload({});
    expect(await core.store.readSchedules()).toEqual([]);
    await core.pass(5 * HOUR);
    await core.reload({ poll: { everyMs: HOUR, missed: "once" } });
    expect(await core.deliveries()).toEqual([]);
    expect(await nextOf(core)).toBe("2026-11-21T14:00:00.000Z");
    await core.pass(HOUR);
    expect(await core.outcomes()).toEqual(["accepted"]);
  });

  it("keeps a pause, also of a schedule that was removed in the meantime", async () => {
    await using core = await startScheduled({ poll: { everyMs: HOUR } });
    await core.core.schedules.setPaused("poll", true);
    await core.reload({});
    await core.reload({ poll: { cron: "0 9 * * *" } });
    expect(await core.core.schedules.get("poll")).toMatchObject({ pausedAt: START, next: [] });
    await core.pass(2 * HOUR);
    expect(await core.deliveries()).toEqual([]);
    expect(texts((await core.core.schedules.setPaused("poll", false)).next)[0]).toBe("2026-11-22T09:00:00.000Z");
  });
});

describe("a skill's schedule", () => {
  it("sends the text that a trigger sends", async () => {
    const { triggerText } = await import("#core/skills/skills.ts");
    expect(triggerText("digest", { n: 1 })).toBe('/digest {"n":1}');
  });
});

// biome-ignore lint/suspicious/noThenProperty: the key of the configuration.
const REFUSES = { then: "refuse" } as const;
