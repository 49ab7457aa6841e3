import { describe, expect, it, vi } from "vitest";
import { startSweeps } from "#core/sessions/sweeps.ts";
import type { CoreSettings } from "#core/settings.ts";
import { createEvents } from "#observe/events.ts";
import { createLogger } from "#observe/logger.ts";
import { createRegistry } from "#observe/metrics.ts";
import { createMemoryStore } from "#store/memory/memory.ts";
import type { SharedStore } from "#store/store.ts";
import { createManualClock } from "#test/harness/clock.ts";

/** The number of sweeps of a gateway in 30 s, with `gateways` on its store if it is shared. */
async function countSweeps(gateways?: number): Promise<number> {
  const clock = createManualClock();
  const shared = gateways === undefined ? {} : { shared: { gateways: () => gateways } as SharedStore };
  const store = Object.assign(createMemoryStore({ clock }), shared);
  const sweep = vi.spyOn(store, "sweep");
  const events = createEvents({
    logger: createLogger({ level: "error", write: () => {} }),
    registry: createRegistry(),
  });
  const kept = () => ({ retentionMs: 1e15, webhookRetentionMs: 1e15, eventRetentionMs: 1e15 }) as CoreSettings;
  const stop = startSweeps({ store, clock, events, settings: kept });
  for (let second = 0; second < 30; second++) await clock.advance(1_000);
  stop();
  return sweep.mock.calls.length;
}

const HOUR = 3_600_000;
const DAY = 24 * HOUR;

/** Sweeps a store with a retention of a day. Returns true if a sweep now would erase older records. */
function startAgeing() {
  const clock = createManualClock();
  const store = createMemoryStore({ clock });
  const sweep = vi.spyOn(store, "sweep");
  const texts: string[] = [];
  const logger = createLogger({ level: "info", format: "json", write: (text) => texts.push(text) });
  const events = createEvents({ logger, registry: createRegistry() });
  const kept = () => ({ retentionMs: DAY, webhookRetentionMs: DAY, eventRetentionMs: DAY }) as CoreSettings;
  const stop = startSweeps({ store, clock, events, settings: kept });
  const erases = async (): Promise<boolean> => {
    await clock.advance(1_000);
    const [{ now, lost, maxAttempts, ...before }] = sweep.mock.lastCall as Parameters<typeof store.sweep>;
    const { usageBefore, gatewayBefore, ...day } = before;
    expect(new Set(Object.values(before).map((at) => at > 0)).size).toBe(1);
    if (usageBefore > 0) expect(day.sessionsBefore).toBe(now - DAY);
    return gatewayBefore > 0;
  };
  const logged = async () => {
    await logger.flush();
    const lines = texts.join("").split("\n").filter(Boolean);
    return lines.map((line) => JSON.parse(line)).map(({ event, byMs }) => [event, byMs]);
  };
  return { clock, erases, logged, stop };
}

describe("F14: a sweep after the wall clock jumped", () => {
  it.each([400 * DAY, HOUR + 1, -HOUR - 1, -400 * DAY])(
    "erases nothing by age for an hour (by %d ms)",
    async (jump) => {
      const { clock, erases, logged, stop } = startAgeing();
      expect(await erases()).toBe(true);
      clock.jump(jump);
      expect(await erases()).toBe(false);
      await clock.advance(HOUR - 2_000);
      expect(await erases()).toBe(false);
      expect(await erases()).toBe(true);
      expect(await erases()).toBe(true);
      expect(await logged()).toEqual([
        ["retention.paused", jump],
        ["retention.resumed", jump],
      ]);
      stop();
    },
  );

  it("erases again at once if the clock is set back to the right time", async () => {
    const { clock, erases, logged, stop } = startAgeing();
    clock.jump(30 * DAY);
    expect(await erases()).toBe(false);
    clock.jump(-30 * DAY + 5_000);
    expect(await erases()).toBe(true);
    expect(await logged()).toEqual([
      ["retention.paused", 30 * DAY],
      ["retention.resumed", 5_000],
    ]);
    stop();
  });

  it("waits for an hour from the last of several jumps", async () => {
    const { clock, erases, stop } = startAgeing();
    clock.jump(30 * DAY);
    expect(await erases()).toBe(false);
    await clock.advance(HOUR - 5_000);
    clock.jump(30 * DAY);
    await clock.advance(HOUR - 1_000);
    expect(await erases()).toBe(false);
    await clock.advance(1_000);
    expect(await erases()).toBe(true);
    stop();
  });

  it("continues if the clock is set by up to an hour, or is slightly fast for a long time", async () => {
    const { clock, erases, logged, stop } = startAgeing();
    clock.jump(HOUR);
    expect(await erases()).toBe(true);
    clock.jump(-HOUR);
    expect(await erases()).toBe(true);
    for (let n = 0; n < 100; n++) {
      clock.jump(HOUR / 10);
      expect(await erases()).toBe(true);
    }
    expect(await logged()).toEqual([]);
    stop();
  });
});

describe("sweeps", () => {
  it("run each second if a gateway does not share its store", async () => {
    expect(await countSweeps()).toBe(30);
    expect(await countSweeps(1)).toBe(30);
  });

  it("alternate between gateways that share a store, but each sweeps at least every three seconds", async () => {
    expect(await countSweeps(2)).toBe(15);
    expect(await countSweeps(3)).toBe(10);
    expect(await countSweeps(50)).toBe(10);
  });
});
