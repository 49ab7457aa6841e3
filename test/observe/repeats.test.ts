import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { createEvents } from "#observe/events.ts";
import { createLogger } from "#observe/logger.ts";
import { createRegistry } from "#observe/metrics.ts";

beforeEach(() => void vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "performance"] }));
afterEach(() => void vi.useRealTimers());

const FULL = new Error("the disk is full");

/** The events, and the log since the last call. */
function startEvents() {
  const lines: Record<string, unknown>[] = [];
  const log = (_: string, event: string, fields: object = {}) => void lines.push({ event, ...fields });
  const registry = createRegistry();
  const { storeFailed } = createEvents({ logger: { ...createLogger({ level: "info" }), log }, registry });
  const logged = () => lines.splice(0).map(({ error: _, ms: __, ...line }) => line);
  return { storeFailed, registry, logged };
}

it("has one line for an error that repeats each second, one more each minute, and one at its end", () => {
  const { storeFailed, registry, logged } = startEvents();
  for (let second = 0; second < 90; second++) {
    storeFailed({ operation: "sweep", error: FULL });
    vi.advanceTimersByTime(1_000);
  }
  expect(logged()).toEqual([
    { event: "store.failed", operation: "sweep" },
    { event: "store.failed", operation: "sweep", suppressed: 59 },
  ]);
  vi.advanceTimersByTime(10_000);
  expect(logged()).toEqual([{ event: "store.settled", operations: ["sweep"], times: 90 }]);
  expect(registry.text()).toContain('gateway_store_failures_total{operation="sweep"} 90\n');
  storeFailed({ operation: "sweep", error: FULL });
  expect(logged()).toEqual([{ event: "store.failed", operation: "sweep" }]);
});

it("reports another operation or another error at once", () => {
  const { storeFailed, logged } = startEvents();
  storeFailed({ operation: "sweep", error: FULL });
  storeFailed({ operation: "record", error: FULL });
  storeFailed({ operation: "sweep", error: FULL });
  storeFailed({ operation: "sweep", error: new Error("the disk is gone") });
  expect(logged()).toEqual([
    { event: "store.failed", operation: "sweep" },
    { event: "store.failed", operation: "record" },
    { event: "store.failed", operation: "sweep", suppressed: 1 },
  ]);
  vi.advanceTimersByTime(6_000);
  storeFailed({ operation: "record", error: FULL });
  vi.advanceTimersByTime(6_000);
  // They are one store: while one operation fails, the failure is not over.
  expect(logged()).toEqual([]);
  vi.advanceTimersByTime(4_000);
  expect(logged()).toEqual([{ event: "store.settled", operations: ["sweep", "record"], times: 5 }]);
});

it("has only its line for a single error", () => {
  const { storeFailed, logged } = startEvents();
  storeFailed({ operation: "sweep", error: FULL });
  storeFailed({ operation: "record", error: FULL });
  expect(logged()).toHaveLength(2);
  vi.advanceTimersByTime(60_000);
  expect(logged()).toEqual([]);
});
