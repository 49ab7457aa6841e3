import type { TimelineStep } from "#core/recorder/deliveries.ts";
import type { Delivery } from "#store/store.ts";
import { deliveryOf } from "#test/stores/world.ts";
import type { TestCore } from "./start-core.ts";

/** A delivery that arrives now. */
export function at(core: TestCore, more: Partial<Delivery> = {}): Delivery {
  return {
    ...deliveryOf("dlv_1"),
    at: core.clock.now(),
    bytes: 2,
    ...more,
  };
}

export async function timelineOf(core: TestCore, deliveryId = "dlv_1"): Promise<TimelineStep[]> {
  return (await core.core.deliveries.get(deliveryId)).timeline;
}

/** Each step with the time since the first one, and its text. */
export async function toldOf(core: TestCore, deliveryId?: string): Promise<unknown[]> {
  const steps = await timelineOf(core, deliveryId);
  const began = steps[0]?.at ?? 0;
  return steps.map(({ at, name, detail }) => (detail ? [at - began, name, detail] : [at - began, name]));
}
export async function namesOf(core: TestCore, deliveryId?: string): Promise<string[]> {
  return (await timelineOf(core, deliveryId)).map(({ name }) => name);
}
