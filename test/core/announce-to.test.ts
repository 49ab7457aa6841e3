import { expect, it } from "vitest";
import { announceOf } from "#core/outbox/announcements.ts";
import { hopsOf, MAX_HOPS } from "#kit/hops.ts";

const channels = new Set(["ops", "dev"]);
function announce(channel: string | undefined, announceTo?: string, delivery: "announce" | "none" = "announce") {
  return announceOf({ channels, announceTo }, { delivery, channel, hops: 1 });
}

it("announces to the named channel, or to the default channel if none is named", () => {
  expect(announce("ops", "dev")).toEqual({ channel: "ops", hops: 1 });
  expect(announce("a label", "dev")).toEqual({ channel: "dev", hops: 1 });
  expect(announce(undefined, "dev")).toEqual({ channel: "dev", hops: 1 });
});

it("adds the address only for the channel that it is in", () => {
  const request = { delivery: "announce", hops: 0, to: "C1", thread: undefined } as const;
  const at = (channel: string) => announceOf({ channels, announceTo: "dev" }, { ...request, channel });
  expect(at("ops")).toEqual({ channel: "ops", hops: 0, to: "C1", thread: undefined });
  expect(at("a label")).toEqual({ channel: "dev", hops: 0 });
});

it("announces nothing if there is no channel, or if no announcement was requested", () => {
  expect(announce("a label")).toBe(undefined);
  expect(announce("__proto__")).toBe(undefined);
  expect(announce(undefined)).toBe(undefined);
  expect(announce("ops", "dev", "none")).toBe(undefined);
  expect(announceOf({ channels, announceTo: "dev" }, { delivery: undefined, channel: "ops", hops: 0 })).toBe(undefined);
});

it("reads the number of announcements that led to a request, and takes an invalid number for the maximum", () => {
  expect(hopsOf(undefined)).toBe(0);
  expect([hopsOf("0"), hopsOf("1"), hopsOf(" 2 "), hopsOf("3")]).toEqual([0, 1, 2, 3]);
  expect([hopsOf("1, 2"), hopsOf("2,0"), hopsOf("1, x")]).toEqual([2, 2, MAX_HOPS]);
  for (const text of ["", "-1", "1.5", "1e0", "0x1", "９", "999", "9999999999", "one", ","])
    expect(hopsOf(text)).toBe(MAX_HOPS);
});
