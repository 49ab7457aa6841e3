import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { expect, it } from "vitest";
import { systemClock } from "#kit/clock.ts";
import { createSqliteStore } from "#store/sqlite/sqlite.ts";
import type { RecordedDelivery } from "#store/store.ts";
import { GatewayProcess } from "#test/harness/process.ts";

const CONFIG = {
  gateway: {
    port: 0,
    rest: { auth: { keys: [{ name: "ops", key: "a-good-long-secret-1", scopes: ["chat", "admin"] }] } },
  },
  agents: { main: { backend: "echo" } },
  store: { type: "sqlite", path: "gateway.db" },
  schedules: { tick: { every: "1s", message: "tick", overlap: "queue" } },
};

/** The planned times that a delivery is about, in milliseconds: of missed ones, all from the first to the last. */
function timesOf({ steps }: Pick<RecordedDelivery, "steps">): number[] {
  const {
    planned_at,
    first_at = planned_at,
    last_at = planned_at,
  } = JSON.parse(steps[0]?.detail ?? "{}") as Record<string, string>;
  const [first, last] = [Date.parse(first_at ?? ""), Date.parse(last_at ?? "")];
  return Array.from({ length: (last - first) / 1_000 + 1 }, (_, n) => first + n * 1_000);
}

/** The first turn that a gateway's schedule started, in its log. */
function startedBy(gateway: GatewayProcess) {
  return gateway.until(() =>
    gateway.records.find(({ event, outcome }) => event === "schedule.ran" && outcome === "started"),
  );
}

it("a gateway that is killed at a planned time starts one turn for it, and records the times while it was down", async () => {
  const first = new GatewayProcess({ config: CONFIG });
  await using _folder = first;
  let gateway = first;
  for (let round = 0; round < 8; round++) {
    const { plannedAt } = await startedBy(gateway);
    // The next planned time, and some milliseconds before or after it.
    await pause(Math.max(0, Date.parse(String(plannedAt)) + 1_000 - Date.now() + round * 2 - 4));
    gateway.kill("SIGKILL");
    await gateway.exited;
    gateway = new GatewayProcess({ cwd: first.folder, args: ["--config", "gateway.json5"] });
  }
  await startedBy(gateway);
  gateway.kill("SIGTERM");
  await gateway.exited;

  await using store = await createSqliteStore({ clock: systemClock, path: join(first.folder, "gateway.db") });
  const { items } = await store.listDeliveries({ surface: "schedule", limit: 1_000 });
  const deliveries = await Promise.all(
    items.map(async ({ deliveryId }) => (await store.getDelivery(deliveryId)) as RecordedDelivery),
  );
  const started = deliveries.filter(({ answer }) => answer === "accepted");
  const turns = (await store.listTurns({ limit: 1_000 })).items;
  expect(started.map(({ turnId }) => turnId).sort()).toEqual(turns.map(({ turnId }) => turnId).sort());
  expect(started.length).toBeGreaterThan(8);
  // Each planned time from the first to the last was handled once.
  const times = deliveries.flatMap(timesOf).sort((a, b) => a - b);
  const [earliest = 0] = times;
  expect(times).toEqual(times.map((_, n) => earliest + n * 1_000));
}, 120_000);
