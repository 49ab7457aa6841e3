import type { ScheduleSettings } from "#core/schedules/settings.ts";
import type { GatewayEntry, RecordedDelivery } from "#store/store.ts";
import { type CoreOptions, startCore } from "./start-core.ts";

export type Written = Partial<ScheduleSettings>;

export function scheduleWith(name: string, written: Written): ScheduleSettings {
  return {
    name,
    cron: undefined,
    everyMs: undefined,
    timeZone: "UTC",
    agent: "main",
    message: written.skillId === undefined ? "write the brief" : undefined,
    skillId: undefined,
    params: undefined,
    sessionId: undefined,
    model: undefined,
    channel: undefined,
    delivery: "none",
    missed: "skip",
    missedWithinMs: 3_600_000,
    overlap: "skip",
    ...written,
  };
}

export function schedulesOf(written: Readonly<Record<string, Written>>): ReadonlyMap<string, ScheduleSettings> {
  return new Map(Object.entries(written).map(([name, one]) => [name, scheduleWith(name, one)]));
}

/** A core with schedules. The manual clock starts on Saturday, 21 November 2026, 08:00 UTC. */
export async function startScheduled(written: Readonly<Record<string, Written>>, options: CoreOptions = {}) {
  const agents = (options.agents ?? [{ name: "main" }]).map((agent) => ({ deadlineMs: 1e12, ...agent }));
  const core = await startCore({
    ...options,
    agents,
    settings: { ...options.settings, schedules: schedulesOf(written) },
  });
  const settle = async (): Promise<void> => {
    for (let n = 0; n < 4; n++) await core.clock.settle();
  };
  await settle();
  const deliveries = async (): Promise<RecordedDelivery[]> => {
    const { items } = await core.store.listDeliveries({ surface: "schedule", limit: 1_000 });
    return items.reverse();
  };
  return Object.assign(core, {
    settle,
    deliveries,
    /** The outcomes of the deliveries, the oldest first. */
    outcomes: async (): Promise<string[]> => (await deliveries()).map(({ answer }) => answer),
    async pass(ms: number): Promise<void> {
      await core.clock.advance(ms);
      await settle();
    },
    /** Completes all turns that run. */
    async endAll(): Promise<void> {
      for (const run of core.scripted.runs) run.end();
      await settle();
    },
    /** The entries of schedules in the gateway's stream. */
    async told(): Promise<GatewayEntry[]> {
      return (await core.core.gatewayStream.read(0, 100_000)).filter(({ name }) => name.startsWith("schedule."));
    },
    reload: async (next: Readonly<Record<string, Written>>): Promise<void> => {
      await core.core.reconfigure({ ...core.settingsWith(agents), schedules: schedulesOf(next) });
      await settle();
    },
  });
}

export function texts(times: readonly number[]): string[] {
  return times.map((time) => new Date(time).toISOString());
}
