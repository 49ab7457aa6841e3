import { expect, test } from "vitest";
import { reasonsOf } from "#console/lib/refusals.ts";

const refused = (delivery_id: string, at: string, error?: string) => ({
  ...{ delivery_id, at, status: 401 },
  timeline:
    error === undefined
      ? []
      : [{ at, name: "request.refused" as const, detail: { error, detail: `of ${delivery_id}` } }],
});

test("refusals are counted by their reason, each with its newest", () => {
  const reasons = reasonsOf([
    refused("dlv_1", "2026-11-24T10:00:00.000Z", "mapping-not-found"),
    refused("dlv_2", "2026-11-24T10:01:00.000Z", "unauthenticated"),
    refused("dlv_3", "2026-11-24T10:02:00.000Z", "unauthenticated"),
    refused("dlv_4", "2026-11-24T10:03:00.000Z"),
  ]);
  expect(reasons.map(({ reason, count, latest, detail }) => [reason, count, latest, detail])).toEqual([
    ["unauthenticated", 2, "dlv_3", "of dlv_3"],
    ["mapping-not-found", 1, "dlv_1", "of dlv_1"],
    ["status 401", 1, "dlv_4", ""],
  ]);
});
