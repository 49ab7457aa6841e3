import { expect, test, vi } from "vitest";
import type { Calling } from "#cli/calling.ts";
import { tailDeliveries } from "#cli/deliveries.ts";

/** A gateway that pushes deliveries, each with its outcome at that time, and omits some; its list has all of them. */
async function tailed(told: readonly (readonly [id: string, outcome: string] | "gap")[]): Promise<string[]> {
  const outcomes = new Map<string, string>();
  async function* pushes() {
    for (const one of told) {
      if (one === "gap") yield { method: "stream.reset", params: {} };
      else {
        outcomes.set(...one);
        yield {
          method: "delivery.changed",
          params: { delivery: { deliveryId: one[0], at: "2026-11-21T08:00:00.000Z" } },
        };
      }
    }
  }
  async function* list() {
    for (const delivery_id of [...outcomes.keys()].reverse()) yield { delivery_id };
  }
  const get = async (delivery_id: string) => ({ delivery_id, outcome: outcomes.get(delivery_id), surface: "hooks" });
  const lines: string[] = [];
  const write = vi.spyOn(process.stdout, "write").mockImplementation((text) => {
    lines.push(String(text));
    return true;
  });
  try {
    await tailDeliveries({
      gateway: { deliveries: { get, list } },
      connect: async () => ({ pushes, subscribe: async () => {}, [Symbol.asyncDispose]: async () => {} }),
      options: { json: true },
      signal: new AbortController().signal,
    } as unknown as Calling<object>);
  } finally {
    write.mockRestore();
  }
  return lines.map((line) => {
    const { delivery_id, outcome } = JSON.parse(line) as { delivery_id: string; outcome: string };
    return `${delivery_id} ${outcome}`;
  });
}

test("a tail prints a delivery once for each outcome, also after a gap that is filled from the list", async () => {
  const lines = await tailed([
    ["one", "running"],
    ["one", "running"],
    ["one", "completed"],
    ["two", "refused"],
    "gap",
    ["two", "refused"],
  ]);
  expect(lines).toEqual(["one running", "one completed", "two refused"]);
});
