import { expect, it } from "vitest";
import { createEchoBackend } from "#backends/echo.ts";
import { createPostgresStore } from "#store/postgres/postgres.ts";
import type { RecordedDelivery, Store } from "#store/store.ts";
import { schedulesOf } from "#test/core/scheduled-core.ts";
import { startCore } from "#test/core/start-core.ts";
import { createManualClock, type ManualClock, START } from "#test/harness/clock.ts";
import { postgresTests } from "#test/harness/postgres.ts";

const MINUTE = 60_000;

/** A gateway's core on this database. Its agent repeats each message. */
async function startNode(url: string, clock: ManualClock) {
  const store = await createPostgresStore({ clock, url: [url], connections: 3 });
  const backend = createEchoBackend({ delayMs: 0, chunks: 1, failTimes: 0 });
  const schedules = schedulesOf({ poll: { everyMs: MINUTE, overlap: "queue" }, daily: { cron: "0 9 * * *" } });
  return await startCore({ clock, backend, settings: { schedules }, wrapStore: () => store });
}

async function deliveriesOf(store: Store): Promise<RecordedDelivery[]> {
  const found: RecordedDelivery[] = [];
  let cursor: string | undefined;
  do {
    const page = await store.listDeliveries({ surface: "schedule", limit: 100, ...(cursor && { cursor }) });
    found.push(...page.items);
    cursor = page.next;
  } while (cursor !== undefined);
  return found;
}

await postgresTests((server) => {
  it("three gateways start 200 turns for 200 planned times, while one of them stops and starts again", async () => {
    const url = await server.createSchema();
    const clock = createManualClock();
    await using one = await startNode(url, clock);
    await using _two = await startNode(url, clock);
    let three: Awaited<ReturnType<typeof startNode>> | undefined = await startNode(url, clock);
    for (let n = 1; n <= 200; n++) {
      if (n === 80) three = void (await three?.[Symbol.asyncDispose]());
      if (n === 120) three = await startNode(url, clock);
      await clock.advance(MINUTE);
      await expect
        .poll(async () => (await one.store.readSchedules()).find(({ name }) => name === "poll")?.nextAt, {
          interval: 2,
        })
        .toBe(START + (n + 1) * MINUTE);
    }
    const all = await deliveriesOf(one.store);
    const polls = all.filter(({ caller }) => caller === "poll");
    expect(polls.map(({ answer }) => answer)).toEqual(Array.from({ length: 200 }, () => "accepted"));
    expect(new Set(polls.map(({ turnId }) => turnId)).size).toBe(200);
    const planned = await Promise.all(
      polls.map(async ({ deliveryId }) => {
        const steps = (await one.store.getDelivery(deliveryId))?.steps ?? [];
        return (JSON.parse(steps[0]?.detail ?? "{}") as { planned_at: string }).planned_at;
      }),
    );
    expect(new Set(planned).size).toBe(200);
    expect(all.filter(({ caller }) => caller === "daily")).toHaveLength(1);
    expect((await one.store.listTurns({ limit: 300 })).items).toHaveLength(201);
    await three?.[Symbol.asyncDispose]();
  }, 120_000);

  it("a schedule that one gateway pauses and resumes runs on any of them", async () => {
    const url = await server.createSchema();
    const clock = createManualClock();
    await using one = await startNode(url, clock);
    await using two = await startNode(url, clock);
    await one.core.schedules.setPaused("poll", true, { caller: "ops" });
    await clock.advance(10 * MINUTE);
    expect(await deliveriesOf(two.store)).toEqual([]);
    await one.core.schedules.setPaused("poll", false, { caller: "ops" });
    const { next } = await two.core.schedules.get("poll");
    expect(next[0]).toBe(START + 11 * MINUTE);
    await one[Symbol.asyncDispose]();
    await expect
      .poll(async () => {
        await clock.advance(10_000);
        return (await deliveriesOf(two.store)).length;
      })
      .toBeGreaterThan(0);
  });
});
