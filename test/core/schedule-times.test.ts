import { describe, expect, it, test } from "vitest";
import { dueTimes, loadCron, nextTime, type PlannedTimes, timesEvery } from "#kit/schedule-times.ts";

const readCron = await loadCron();
const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

function at(text: string): number {
  return Date.parse(text);
}
function textOf(time: number | undefined): string | undefined {
  return time === undefined ? undefined : new Date(time).toISOString().replace(":00.000Z", "Z");
}
/** All planned times in (from, to]. */
function between(times: PlannedTimes, from: string, to: string): (string | undefined)[] {
  const found: (string | undefined)[] = [];
  for (let time = times.after(at(from)); time !== undefined && time <= at(to); time = times.after(time))
    found.push(textOf(time));
  return found;
}

/** The nights of a clock change: the local day in UTC, and the times of the skipped or repeated half hours or hours in UTC. */
const GAPS = [
  {
    zone: "Europe/Berlin",
    day: ["2026-03-28T23:00Z", "2026-03-29T22:00Z"],
    cron: "30 2 * * *",
    runs: "2026-03-29T01:00Z",
  },
  {
    zone: "America/New_York",
    day: ["2026-03-08T05:00Z", "2026-03-09T04:00Z"],
    cron: "30 2 * * *",
    runs: "2026-03-08T07:00Z",
  },
  {
    zone: "Australia/Lord_Howe",
    day: ["2026-10-03T13:30Z", "2026-10-04T13:00Z"],
    cron: "15 2 * * *",
    runs: "2026-10-03T15:30Z",
  },
] as const;
const REPEATS = [
  {
    zone: "Europe/Berlin",
    day: ["2026-10-24T22:00Z", "2026-10-25T23:00Z"],
    cron: "30 2 * * *",
    runs: "2026-10-25T00:30Z",
  },
  {
    zone: "America/New_York",
    day: ["2026-11-01T04:00Z", "2026-11-02T05:00Z"],
    cron: "30 1 * * *",
    runs: "2026-11-01T05:30Z",
  },
  {
    zone: "Australia/Lord_Howe",
    day: ["2026-04-04T13:00Z", "2026-04-05T13:30Z"],
    cron: "45 1 * * *",
    runs: "2026-04-04T14:45Z",
  },
] as const;
const NIGHTS = [...GAPS, ...REPEATS];

describe("on the night of a clock change", () => {
  test.each(GAPS)(
    "a daily time that $zone skips is planned right after the change",
    ({ zone, cron, runs, day: [from, to] }) => {
      expect(between(readCron(cron, zone), from, to)).toEqual([runs]);
    },
  );

  test.each(REPEATS)("a daily time that $zone repeats is planned once", ({ zone, cron, runs, day: [from, to] }) => {
    expect(between(readCron(cron, zone), from, to)).toEqual([runs]);
  });

  test.each(NIGHTS)("each daily time has one run in $zone ($cron)", ({ zone, day: [from, to] }) => {
    const start = textOf(at(from) - 1) as string;
    const end = textOf(at(to) - 1) as string;
    for (let minutes = 0; minutes < 24 * 60; minutes += 15) {
      const daily = `${minutes % 60} ${Math.floor(minutes / 60)} * * *`;
      expect(between(readCron(daily, zone), start, end), daily).toHaveLength(1);
    }
  });

  test.each(NIGHTS)(
    "a run that is planned again at any time of the day stays one run in $zone ($cron)",
    ({ zone, cron, runs, day: [from, to] }) => {
      const times = readCron(cron, zone);
      for (let now = at(from); now < at(to); now += 5 * MINUTE) {
        const next = times.after(now) as number;
        expect(next === at(runs) || next >= at(to)).toBe(true);
        expect(next === at(runs)).toBe(now < at(runs));
        const last = times.upTo(now) as number;
        expect(last === at(runs)).toBe(now >= at(runs));
      }
    },
  );

  test.each(NIGHTS)(
    "a run each quarter of an hour comes after 15 minutes each time in $zone ($cron)",
    ({ zone, day: [from, to] }) => {
      const found = between(readCron("*/15 * * * *", zone), from, to);
      expect(found).toHaveLength((at(to) - at(from)) / (15 * MINUTE));
      for (const [n, time] of found.entries()) expect(time).toBe(textOf(at(from) + (n + 1) * 15 * MINUTE));
    },
  );

  test.each(GAPS)("a list of hours runs at each of them in $zone ($cron)", ({ zone, cron, day: [from, to] }) => {
    const twice = cron.replace(" 2 ", " 2,14 ");
    expect(between(readCron(twice, zone), from, to)).toHaveLength(2);
  });

  it("an interval does not change", () => {
    const times = timesEvery(DAY, at("2026-03-28T01:30Z"));
    expect(between(times, "2026-03-28T01:30Z", "2026-03-30T12:00Z")).toEqual([
      "2026-03-29T01:30Z",
      "2026-03-30T01:30Z",
    ]);
  });
});

describe("the work of a planned time that has passed", () => {
  const daily = readCron("0 9 * * *", "UTC");
  const quarterly = timesEvery(15 * MINUTE, at("2026-01-01T00:00Z"));
  const shown = (times: PlannedTimes, planned: string, now: string) => {
    const { run, missed, nextAt } = dueTimes(times, at(planned), at(now));
    const { count, firstAt, lastAt } = missed ?? {};
    return [textOf(run), missed && [count, textOf(firstAt), textOf(lastAt)], textOf(nextAt)];
  };

  it("is a run for up to a minute", () => {
    expect(shown(daily, "2026-01-01T09:00Z", "2026-01-01T09:01Z")).toEqual([
      "2026-01-01T09:00Z",
      undefined,
      "2026-01-02T09:00Z",
    ]);
    expect(shown(daily, "2026-01-01T09:00Z", "2026-01-01T09:01:01Z")).toEqual([
      undefined,
      [1, "2026-01-01T09:00Z", "2026-01-01T09:00Z"],
      "2026-01-02T09:00Z",
    ]);
  });

  it("is a run for half of the time to the next one", () => {
    const each = timesEvery(10_000, 0);
    expect(dueTimes(each, 20_000, 25_000)).toEqual({ run: 20_000, missed: undefined, nextAt: 30_000 });
    expect(dueTimes(each, 20_000, 25_001)).toEqual({
      run: undefined,
      missed: { count: 1, firstAt: 20_000, lastAt: 20_000 },
      nextAt: 30_000,
    });
  });

  it("counts the times that were missed, and leaves the one that is on time", () => {
    expect(shown(quarterly, "2026-01-01T09:00Z", "2026-01-01T10:05Z")).toEqual([
      undefined,
      [5, "2026-01-01T09:00Z", "2026-01-01T10:00Z"],
      "2026-01-01T10:15Z",
    ]);
    expect(shown(quarterly, "2026-01-01T09:00Z", "2026-01-01T10:00:30Z")).toEqual([
      "2026-01-01T10:00Z",
      [4, "2026-01-01T09:00Z", "2026-01-01T09:45Z"],
      "2026-01-01T10:15Z",
    ]);
  });

  it("counts a thousand times at most", () => {
    const each = readCron("* * * * *", "Europe/Berlin");
    expect(shown(each, "2026-01-01T00:00Z", "2026-03-01T00:00:45Z")).toEqual([
      undefined,
      [1_000, "2026-01-01T00:00Z", "2026-03-01T00:00Z"],
      "2026-03-01T00:01Z",
    ]);
    expect(shown(each, "2026-01-01T00:00Z", "2026-03-01T00:00:05Z")).toEqual([
      "2026-03-01T00:00Z",
      [1_000, "2026-01-01T00:00Z", "2026-02-28T23:59Z"],
      "2026-03-01T00:01Z",
    ]);
  });
});

describe("the next time after the clock was set back", () => {
  const daily = readCron("0 9 * * *", "UTC");

  it("is not one that was handled", () => {
    expect(textOf(nextTime(daily, at("2026-01-05T08:59Z"), at("2026-01-05T09:00Z")))).toBe("2026-01-06T09:00Z");
    expect(textOf(nextTime(daily, at("2026-01-05T09:00:01Z"), at("2026-01-05T09:00Z")))).toBe("2026-01-06T09:00Z");
  });

  it("is the next one by the clock, if several handled times are ahead of it", () => {
    expect(textOf(nextTime(daily, at("2026-01-05T08:00Z"), at("2026-01-06T09:00Z")))).toBe("2026-01-05T09:00Z");
    const each = timesEvery(MINUTE, 0);
    expect(nextTime(each, at("2026-01-05T08:00:30Z"), at("2026-01-05T08:30Z"))).toBe(at("2026-01-05T08:01Z"));
  });
});
