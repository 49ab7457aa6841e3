import type { Delivery, ScheduledStart, ScheduleOrder } from "#store/store.ts";
import { deliveryOf, RECORDER, type World, type WorldOptions } from "./world.ts";

export const PLAN = "UTC 0 9 * * *";
const DAY = 86_400_000;

export function plan(world: World, options: { name?: string; plan?: string; nextAt?: number; instead?: number } = {}) {
  const { name = "brief", ...rest } = options;
  return world.store.planSchedule(name, { plan: PLAN, nextAt: world.clock.now(), ...rest });
}

export function fired(world: World, answer: Delivery["answer"] = "accepted"): Delivery {
  const ours = { surface: "schedule", operation: "schedules.fire", path: "schedules/brief", caller: "brief" } as const;
  return { ...deliveryOf(world.newId("dlv")), ...ours, body: undefined, answer };
}

type Start = Partial<ScheduledStart> & { order?: WorldOptions };

export function startOf(world: World, { order, ...rest }: Start = {}): ScheduledStart {
  const delivery = fired(world);
  const turn = world.order({ surface: "schedule", caller: "brief", delivery, ...order });
  return { plannedAt: world.clock.now(), overlap: "skip", agent: "main", delivery, turn, ...rest };
}

export function orderOf(world: World, change: Partial<ScheduleOrder> & { start?: ScheduledStart } = {}): ScheduleOrder {
  const now = world.clock.now();
  const start = "start" in change ? change.start : startOf(world);
  const planned = { now, name: "brief", plan: PLAN, plannedAt: now, nextAt: now + DAY };
  return { ...planned, missed: undefined, recorder: RECORDER, ...change, start };
}
