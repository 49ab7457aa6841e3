import { describe, expect, test } from "vitest";
import { isTimeZone, type Period, windowAt } from "#kit/windows.ts";

function shown(at: string, per: Period, timeZone: string) {
  const { start, end } = windowAt(Date.parse(at), { per, timeZone });
  return [start, end].map((time) => new Date(time).toISOString().replace(":00.000Z", "Z"));
}

describe("a day", () => {
  test("begins at midnight in its time zone", () => {
    expect(shown("2026-11-29T12:00Z", "day", "UTC")).toEqual(["2026-11-29T00:00Z", "2026-11-30T00:00Z"]);
    expect(shown("2026-11-29T23:30Z", "day", "Europe/Berlin")).toEqual(["2026-11-29T23:00Z", "2026-11-30T23:00Z"]);
    expect(shown("2026-11-29T05:00Z", "day", "America/New_York")).toEqual(["2026-11-29T05:00Z", "2026-11-30T05:00Z"]);
    expect(shown("2026-11-29T04:59Z", "day", "America/New_York")).toEqual(["2026-11-28T05:00Z", "2026-11-29T05:00Z"]);
  });

  test("begins at half past where the zone has half hours, or quarters", () => {
    expect(shown("2026-06-01T18:29Z", "day", "Asia/Kolkata")).toEqual(["2026-05-31T18:30Z", "2026-06-01T18:30Z"]);
    expect(shown("2026-06-01T18:15Z", "day", "Asia/Kathmandu")).toEqual(["2026-06-01T18:15Z", "2026-06-02T18:15Z"]);
  });

  test("has 23 hours when the clocks go forward and 25 when they go back", () => {
    expect(shown("2026-03-29T12:00Z", "day", "Europe/Berlin")).toEqual(["2026-03-28T23:00Z", "2026-03-29T22:00Z"]);
    expect(shown("2026-10-25T12:00Z", "day", "Europe/Berlin")).toEqual(["2026-10-24T22:00Z", "2026-10-25T23:00Z"]);
    expect(shown("2026-03-08T12:00Z", "day", "America/New_York")).toEqual(["2026-03-08T05:00Z", "2026-03-09T04:00Z"]);
    expect(shown("2026-11-01T12:00Z", "day", "America/New_York")).toEqual(["2026-11-01T04:00Z", "2026-11-02T05:00Z"]);
  });

  test("begins at one o'clock where the clocks skip midnight, and at the first of two midnights", () => {
    expect(shown("2018-11-04T12:00Z", "day", "America/Sao_Paulo")).toEqual(["2018-11-04T03:00Z", "2018-11-05T02:00Z"]);
    expect(shown("2026-11-01T04:30Z", "day", "America/Havana")).toEqual(["2026-11-01T04:00Z", "2026-11-02T05:00Z"]);
    expect(shown("2026-11-01T05:30Z", "day", "America/Havana")).toEqual(["2026-11-01T04:00Z", "2026-11-02T05:00Z"]);
  });

  test("does not exist where the calendar skipped it", () => {
    expect(shown("2011-12-30T09:59Z", "day", "Pacific/Apia")).toEqual(["2011-12-29T10:00Z", "2011-12-30T10:00Z"]);
    expect(shown("2011-12-30T10:00Z", "day", "Pacific/Apia")).toEqual(["2011-12-30T10:00Z", "2011-12-31T10:00Z"]);
  });
});

describe("an hour", () => {
  test("that the clocks repeat is two windows of an hour each", () => {
    expect(shown("2026-10-25T00:30Z", "hour", "Europe/Berlin")).toEqual(["2026-10-25T00:00Z", "2026-10-25T01:00Z"]);
    expect(shown("2026-10-25T01:30Z", "hour", "Europe/Berlin")).toEqual(["2026-10-25T01:00Z", "2026-10-25T02:00Z"]);
  });

  test("follows the one before the clocks went forward", () => {
    expect(shown("2026-03-29T00:59Z", "hour", "Europe/Berlin")).toEqual(["2026-03-29T00:00Z", "2026-03-29T01:00Z"]);
    expect(shown("2026-03-29T01:00Z", "hour", "Europe/Berlin")).toEqual(["2026-03-29T01:00Z", "2026-03-29T02:00Z"]);
  });

  test("begins with the local clock in zones with half hours", () => {
    expect(shown("2026-06-01T18:31Z", "hour", "Asia/Kolkata")).toEqual(["2026-06-01T18:30Z", "2026-06-01T19:30Z"]);
  });

  test("ends where the clocks change by half an hour", () => {
    expect(shown("2026-04-04T14:45Z", "hour", "Australia/Lord_Howe")).toEqual([
      "2026-04-04T14:00Z",
      "2026-04-04T15:00Z",
    ]);
    expect(shown("2026-04-04T15:10Z", "hour", "Australia/Lord_Howe")).toEqual([
      "2026-04-04T15:00Z",
      "2026-04-04T15:30Z",
    ]);
    expect(shown("2026-10-03T15:45Z", "hour", "Australia/Lord_Howe")).toEqual([
      "2026-10-03T15:30Z",
      "2026-10-03T16:00Z",
    ]);
  });
});

describe("a month", () => {
  test("has the days of its calendar, also in a leap year", () => {
    expect(shown("2028-02-29T23:59Z", "month", "UTC")).toEqual(["2028-02-01T00:00Z", "2028-03-01T00:00Z"]);
    expect(shown("2026-02-28T23:59Z", "month", "UTC")).toEqual(["2026-02-01T00:00Z", "2026-03-01T00:00Z"]);
    expect(shown("2026-12-31T23:30Z", "month", "Europe/Berlin")).toEqual(["2026-12-31T23:00Z", "2027-01-31T23:00Z"]);
  });

  test("begins and ends with the offsets of its first and last night", () => {
    expect(shown("2026-03-15T00:00Z", "month", "Europe/Berlin")).toEqual(["2026-02-28T23:00Z", "2026-03-31T22:00Z"]);
    expect(shown("2026-10-31T22:59Z", "month", "Europe/Berlin")).toEqual(["2026-09-30T22:00Z", "2026-10-31T23:00Z"]);
  });
});

test("windows follow one another without a gap, in every zone", () => {
  const zones = ["UTC", "Europe/London", "America/St_Johns", "Asia/Tehran", "Pacific/Chatham", "Australia/Lord_Howe"];
  for (const timeZone of [...zones, "Antarctica/Troll", "Africa/Casablanca", "America/Asuncion"]) {
    for (const [per, steps] of [
      ["hour", 9_000],
      ["day", 400],
      ["month", 24],
    ] as const) {
      let at = Date.parse("2026-01-17T03:10:11.123Z");
      for (let n = 0; n < steps; n++) {
        const { start, end } = windowAt(at, { per, timeZone });
        if (n > 0 && start !== at) throw new Error(`${per} ${timeZone}: ${start} is not ${at}`);
        at = end;
      }
    }
  }
});

test("the last moment of a window belongs to it, and the first after it does not", () => {
  const day = { per: "day", timeZone: "Europe/Berlin" } as const;
  const first = windowAt(Date.parse("2026-10-25T12:00Z"), day);
  expect(windowAt(first.end - 1, day)).toEqual(first);
  expect(windowAt(first.end, day).start).toBe(first.end);
  expect(windowAt(first.start, day)).toEqual(first);
  expect(windowAt(first.start - 1, day).end).toBe(first.start);
});

test("a name is checked against the zones of this machine", () => {
  expect(["UTC", "Europe/Berlin", "Asia/Kolkata"].map(isTimeZone)).toEqual([true, true, true]);
  expect(["Europe/Berln", "Berlin", "", "CEST2"].map(isTimeZone)).toEqual([false, false, false, false]);
});
