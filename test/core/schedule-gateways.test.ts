import { describe, expect, it } from "vitest";
import type { Store } from "#store/store.ts";
import { startScheduled, texts, type Written } from "./scheduled-core.ts";

const SECOND = 1_000;
const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

type Core = Awaited<ReturnType<typeof startScheduled>>;
type Schedules = Readonly<Record<string, Written>>;

/** The first of the gateways on a shared store. Their manual clock starts at 08:00. */
async function startFirst(written: Schedules): Promise<Core> {
  return await startScheduled(written, { wrapStore: () => ({ shared: { haveAgents: async () => [] } as never }) });
}

/** Another gateway on the store of `first`, with a wall clock that is `behindMs` behind. */
async function startNext({ store, clock }: Core, written: Schedules, behindMs = 0): Promise<Core> {
  const wrapStore = () => ({ ...store, [Symbol.asyncDispose]: async () => {} }) as Store;
  return await startScheduled(written, { clock: { ...clock, now: () => clock.now() - behindMs }, wrapStore });
}

/** The outcome and the planned time of each run. */
async function runsOf(core: Core): Promise<string[]> {
  return (await core.told()).flatMap((entry) =>
    entry.name === "schedule.ran" ? [`${entry.outcome} ${texts([entry.plannedAt])[0]?.slice(11, 19)}`] : [],
  );
}

describe("a gateway whose clock is behind those of the others", () => {
  it("runs no planned time again, and records none as missed", async () => {
    const poll = { everyMs: SECOND, overlap: "queue" } as const;
    await using first = await startFirst({ poll });
    await first.pass(3 * SECOND);
    await using _second = await startNext(first, { poll }, 3 * SECOND);
    await first.pass(3 * SECOND);
    expect(await runsOf(first)).toEqual([1, 2, 3, 4, 5, 6].map((n) => `started 08:00:0${n}`));
  });

  it("does not run an interval at once", async () => {
    const poll = { everyMs: 12 * HOUR };
    await using first = await startFirst({ poll });
    await using _second = await startNext(first, { poll }, SECOND);
    await first.pass(MINUTE);
    expect(await runsOf(first)).toEqual([]);
  });

  it("leaves the planned times as they are if it is set back", async () => {
    const poll = { everyMs: HOUR, overlap: "queue" } as const;
    await using first = await startFirst({ poll });
    await first.pass(3 * HOUR);
    let behindMs = 0;
    const { store, clock } = first;
    await using _second = await startScheduled(
      { poll },
      {
        clock: { ...clock, now: () => clock.now() - behindMs },
        wrapStore: () => ({ ...store, [Symbol.asyncDispose]: async () => {} }),
      },
    );
    behindMs = 10 * HOUR;
    await first.pass(HOUR);
    expect(await runsOf(first)).toEqual(["09", "10", "11", "12"].map((hour) => `started ${hour}:00:00`));
  });
});

describe("a schedule that another gateway planned with another configuration", () => {
  it("runs as configured here once no gateway runs the other plan, and the log has a warning", async () => {
    await using first = await startFirst({ poll: { everyMs: HOUR } });
    await using second = await startNext(first, { poll: { everyMs: 30 * MINUTE } });
    const old = await startNext(first, { poll: { everyMs: HOUR } });
    await first.core.close();
    await second.pass(2 * MINUTE);
    await old.core.close();
    expect(await second.logged("schedule.replaced")).toMatchObject([
      { level: "warn", schedule: "poll", plan: "every 3600000" },
    ]);
    await second.pass(3 * HOUR);
    expect(second.scripted.runs).not.toHaveLength(0);
    const [{ next } = { next: [] }] = await second.core.schedules.list();
    expect(next).toHaveLength(5);
  });

  it("is not planned again by turns while both run", async () => {
    await using first = await startFirst({ poll: { everyMs: HOUR } });
    await using second = await startNext(first, { poll: { cron: "0 9 * * *" } });
    for (let n = 0; n < 3; n++) {
      await second.endAll();
      first.clock.jump(n === 0 ? HOUR - 30 * SECOND : DAY - MINUTE);
      await second.pass(MINUTE);
    }
    expect(first.scripted.runs).toEqual([]);
    expect(await second.logged("schedule.replaced")).toEqual([]);
    expect(await first.logged("schedule.replaced")).toHaveLength(1);
    expect(await second.outcomes()).toHaveLength(3);
  });

  it("has the plan of the gateway that resumes it", async () => {
    await using first = await startFirst({ poll: { everyMs: HOUR } });
    await first.core.schedules.setPaused("poll", true);
    await using _second = await startNext(first, { poll: { cron: "0 9 * * *" } });
    const { next } = await first.core.schedules.setPaused("poll", false);
    expect(next).toHaveLength(5);
    await first.pass(HOUR);
    expect(first.scripted.runs).toHaveLength(1);
  });
});

describe("a schedule that another gateway removed", () => {
  it("still runs today", async () => {
    const brief = { cron: "0 9 * * *" };
    await using first = await startFirst({ brief });
    await using second = await startNext(first, { brief });
    await second.pass(HOUR - 20 * SECOND);
    await first.reload({});
    await second.pass(MINUTE);
    expect(await runsOf(second)).toEqual(["started 09:00:00"]);
    expect(second.scripted.runs).toHaveLength(1);
  });
});

describe("a thousand schedules with the same planned time", () => {
  it("are read a few times, not once for each run", async () => {
    let reads = 0;
    const names = Array.from({ length: 1_000 }, (_, n) => [`s${n}`, { cron: "0 9 * * *" }] as const);
    const wrapStore = (store: Store): Partial<Store> => ({
      readSchedules: () => {
        reads++;
        return store.readSchedules();
      },
      runSchedule: async (order) => {
        for (let n = 0; n < Number(order.name.slice(1)) / 10; n++) await Promise.resolve();
        await new Promise(setImmediate);
        return await store.runSchedule(order);
      },
    });
    await using core = await startScheduled(Object.fromEntries(names), { wrapStore });
    reads = 0;
    core.clock.jump(HOUR - 30 * SECOND);
    await core.pass(MINUTE);
    await expect.poll(() => core.scripted.runs.length).toBeGreaterThan(250);
    expect(reads).toBeLessThan(10);
  });
});
