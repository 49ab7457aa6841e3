import { describe, expect, it, test } from "vitest";
import { exampleSchedule, plannedTimes, stateOfRun, whenOf } from "#console/lib/schedules.ts";

describe("the times of a schedule", () => {
  it.each([
    ["* * * * *", "Every minute"],
    ["*/15 * * * *", "Every 15 minutes"],
    ["0 * * * *", "Every hour"],
    ["5 */6 * * *", "Every 6 hours at :05"],
    ["0 9 * * *", "Daily at 09:00"],
    ["30 8,12,17 * * *", "Daily at 08:30, 12:30 and 17:30"],
    ["0 9 * * 1-5", "Weekdays at 09:00"],
    ["0 9 * * MON-FRI", "Weekdays at 09:00"],
    ["0 9 * * 0", "Sundays at 09:00"],
    ["0 9 * * 7", "Sundays at 09:00"],
    ["15 17 * * fri", "Fridays at 17:15"],
    ["0 9 * * 1,3,5", "Mon, Wed and Fri at 09:00"],
    ["0 6 1 * *", "Monthly on day 1 at 06:00"],
  ])("are words if the cron expression is simple: %s", (cron, words) => {
    expect(whenOf({ cron, every: null })).toBe(words);
  });

  it.each([
    // The last interval of the hour or the day is shorter.
    ...["*/7 * * * *", "0 */5 * * *", "*/0 * * * *"],
    ...["0 9 1 * 1", "0 9 * 1 *", "0 9-17 * * *", "0 9 * * 1#2", "0 9 L * *", "0 9 0 * *", "0 1,2,3,4 * * *"],
    ...["30 0 9 * * *", "60 9 * * *", "0 24 * * *", "@daily", ""],
  ])("are the cron expression if it is not simple: %s", (cron) => {
    expect(whenOf({ cron, every: null })).toBe(cron);
  });

  it("are the interval of `every`", () => {
    expect(["1s", "1m", "15m", "2h", "1d", "1h30m"].map((every) => whenOf({ cron: null, every }))).toEqual([
      "Every second",
      "Every minute",
      "Every 15 minutes",
      "Every 2 hours",
      "Every day",
      "Every 1h30m",
    ]);
  });
});

describe("planned times", () => {
  // Clocks go back in Berlin on 25 October 2026.
  const next = ["2026-10-24T07:00:00.000Z", "2026-10-25T08:00:00.000Z"];

  it("are in the zones of the reader and of the schedule", () => {
    expect(plannedTimes(next, "Europe/Berlin", "UTC").map(({ here, there }) => [here, there])).toEqual([
      ["Sat 24 Oct, 07:00", "Sat 24 Oct, 09:00"],
      ["Sun 25 Oct, 08:00", "Sun 25 Oct, 09:00"],
    ]);
  });

  it("have seconds if one of them has any", () => {
    const [first] = plannedTimes(["2026-10-24T07:00:00.000Z", "2026-10-24T07:00:15.000Z"], "UTC", "UTC");
    expect(first?.here).toBe("Sat 24 Oct, 07:00:00");
  });

  it("are only in the reader's zone if the browser does not know the other", () => {
    expect(plannedTimes(next, "Mars/Olympus", "UTC")[0]).toMatchObject({ here: "Sat 24 Oct, 07:00", there: undefined });
  });
});

test("a run has the state of its turn, or its own if it started none", () => {
  expect(stateOfRun({ outcome: "started", turn_status: "running" })).toBe("running");
  expect(stateOfRun({ outcome: "started", turn_status: null })).toBe("gone");
  expect(stateOfRun({ outcome: "missed", turn_status: null })).toBe("missed");
});

test("the example is a block of the configuration's form", () => {
  expect(exampleSchedule(true)).toBe(
    [
      "schedules:",
      "  brief:",
      '    cron: "0 9 * * 1-5"',
      '    timeZone: "Europe/Berlin"',
      '    message: "Write the brief of the day."',
    ].join("\n"),
  );
  expect(exampleSchedule(false).split("\n").at(-1)).toBe("},");
});
