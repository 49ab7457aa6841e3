import { expect, test } from "vitest";
import { createPressure } from "#gateway/process-health.ts";
import { startProcess } from "#test/harness/process.ts";
import { createRest } from "#test/harness/rest.ts";
import { agentWith, key, opsToken } from "./configs.ts";

const REFUSALS = 100;
const AT_ONCE = 4;
/** Running turns are in the heap, stored ones are not: enough turns run at a time to fill the heap, also on a busy machine. */
const TEXT = "x".repeat(20_000);
const RUNS_MS = 10_000;
const headers = { authorization: `Bearer ${opsToken}`, "content-type": "application/json" };

/** Sends messages, always some at a time, until a number were refused. Counts their results. */
async function fill(url: string): Promise<Record<string, number>> {
  const counts: Record<string, number> = {};
  let sent = 0;
  const send = async (): Promise<void> => {
    while ((counts["gateway-busy"] ?? 0) < REFUSALS) {
      const params = { agentName: "main", userId: `u${++sent}`, message: TEXT };
      const body = JSON.stringify({ jsonrpc: "2.0", id: sent, method: "agent.sendMessage", params });
      const reply = await fetch(`${url}/rpc`, { method: "POST", headers, body });
      const { error } = (await reply.json()) as { error?: { data: { name: string } } };
      const became = error?.data.name ?? "delivered";
      counts[became] = (counts[became] ?? 0) + 1;
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, send));
  return counts;
}

test("F24: near its memory limit it refuses new turns, answers /healthz and reads, and continues", async () => {
  await using gateway = await startProcess({
    node: ["--max-old-space-size=36", "--max-semi-space-size=4"],
    config: agentWith({ delayMs: RUNS_MS }),
  });
  const rest = createRest(gateway.url, key);
  const { delivered = 0, "gateway-busy": refused = 0, ...others } = await fill(gateway.url);
  expect(others).toEqual({});
  expect(refused).toBeGreaterThanOrEqual(REFUSALS);
  expect(delivered).toBeGreaterThan(REFUSALS);
  const errors = gateway.records.flatMap(({ error }) => (typeof error === "string" ? [error] : []));
  expect(new Set(errors)).toEqual(new Set(["gateway-busy"]));

  expect((await rest.call("ops.healthz", { key: null })).status).toBe(200);
  const turnId = String(gateway.records.find((record) => typeof record.turnId === "string")?.turnId);
  const turn = await rest.call("turns.get", { path: { turn_id: turnId } });
  expect(turn.status).toBe(200);
  gateway.kill("SIGTERM");
  expect(await gateway.exited).toEqual({ code: 0, signal: null });
});

test("memory is low near the limit of the heap or of the container, and not any more after it is freed", () => {
  let now = 0;
  const clock = { monotonic: () => now };
  const MB = 2 ** 20;
  const memory = { heap: 50 * MB, heapLimit: 100 * MB, resident: 50, residentLimit: 100 };
  const isShort = createPressure(clock, () => memory);
  const after = (change: Partial<typeof memory>): boolean => {
    now += 500;
    Object.assign(memory, change);
    return isShort();
  };
  expect(after({})).toBe(false);
  expect(after({ heap: 81 * MB })).toBe(true);
  expect(after({ heap: 79 * MB })).toBe(false);
  expect(after({ heap: 25 * MB, heapLimit: 36 * MB })).toBe(true);
  expect(after({ heap: 23 * MB })).toBe(false);
  expect(after({ resident: 91 })).toBe(true);
  expect(after({ resident: 89 })).toBe(false);
});

test("memory near the limit is checked more often than memory far from it", () => {
  let now = 0;
  let heap = 50;
  const memory = () => ({ heap, heapLimit: 1e9, resident: heap, residentLimit: 100 });
  const isShort = createPressure({ monotonic: () => now }, memory);
  const shortAfter = (ms: number, resident: number): boolean => {
    now += ms;
    heap = resident;
    return isShort();
  };
  expect(shortAfter(0, 50)).toBe(false);
  expect(shortAfter(400, 95)).toBe(false);
  expect(shortAfter(100, 80)).toBe(false);
  expect(shortAfter(50, 95)).toBe(true);
  expect(shortAfter(50, 50)).toBe(false);
});
