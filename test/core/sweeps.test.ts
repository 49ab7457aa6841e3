import { describe, expect, it, vi } from "vitest";
import { startSweeps } from "#core/sweeps.ts";
import { createEvents } from "#observe/events.ts";
import { createLogger } from "#observe/logger.ts";
import { createRegistry } from "#observe/metrics.ts";
import { createMemoryStore } from "#store/memory/memory.ts";
import type { SharedStore } from "#store/store.ts";
import { createManualClock } from "#test/harness/clock.ts";

/** How often a gateway sweeps in 30 s; `gateways` on its store, if that can be shared. */
const countSweeps = async (gateways?: number): Promise<number> => {
  const clock = createManualClock();
  const shared = gateways === undefined ? {} : { shared: { gateways: () => gateways } as SharedStore };
  const store = Object.assign(createMemoryStore({ clock }), shared);
  const sweep = vi.spyOn(store, "sweep");
  const events = createEvents({
    logger: createLogger({ level: "error", write: () => {} }),
    registry: createRegistry(),
  });
  const kept = () => ({ retentionMs: 1e15, webhookRetentionMs: 1e15, eventRetentionMs: 1e15 });
  const stop = startSweeps({ store, clock, events, kept });
  for (let second = 0; second < 30; second++) await clock.advance(1_000);
  stop();
  return sweep.mock.calls.length;
};

describe("sweeps", () => {
  it("come each second where a gateway has its store to itself", async () => {
    expect(await countSweeps()).toBe(30);
    expect(await countSweeps(1)).toBe(30);
  });

  it("come by turns where gateways share it, but of each every three seconds at least", async () => {
    expect(await countSweeps(2)).toBe(15);
    expect(await countSweeps(3)).toBe(10);
    expect(await countSweeps(50)).toBe(10);
  });
});
