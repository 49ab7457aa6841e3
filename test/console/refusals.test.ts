import { expect, test } from "vitest";
import { reasonsOf } from "#console/lib/refusals.ts";

function refused(delivery_id: string, at: string, name?: string, detail: string | null = "why") {
  return { delivery_id, at, status: 401, error: name === undefined ? null : { name, detail } };
}

test("refusals are counted by their error and its detail, each with its newest", () => {
  const reasons = reasonsOf([
    refused("dlv_1", "2026-11-24T10:00:00.000Z", "mapping-not-found", null),
    refused("dlv_2", "2026-11-24T10:01:00.000Z", "unauthenticated"),
    refused("dlv_3", "2026-11-24T10:02:00.000Z", "unauthenticated"),
    refused("dlv_4", "2026-11-24T10:03:00.000Z"),
    refused("dlv_5", "2026-11-24T10:04:00.000Z", "unauthenticated", "the signature is wrong"),
  ]);
  expect(reasons.map(({ reason, count, latest, detail }) => [reason, count, latest, detail])).toEqual([
    ["unauthenticated", 2, "dlv_3", "why"],
    ["mapping-not-found", 1, "dlv_1", ""],
    ["status 401", 1, "dlv_4", ""],
    ["unauthenticated", 1, "dlv_5", "the signature is wrong"],
  ]);
});
