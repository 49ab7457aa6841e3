import type { Delivery, DeliveryQuery, DeliveryStep } from "#store/store.ts";
import { deliveryOf, RECORDER, type World } from "./world.ts";

export const STEPS: DeliveryStep[] = [
  { at: 1, name: "token.accepted", detail: JSON.stringify({ name: "shared ü" }) },
  { at: 2, name: "challenge.answered", detail: undefined },
];

/** A webhook's delivery with all optional fields. */
export function hookOf(deliveryId: string, options: Partial<Delivery> = {}): Delivery {
  return {
    ...deliveryOf(deliveryId),
    at: 1_000,
    surface: "hooks",
    operation: "hooks.mappedByName",
    path: "/hooks/github-push",
    requestId: `req_of_${deliveryId}`,
    caller: "shared",
    headers: "content-type: application/json\nx-ü: 漢",
    mapping: "github-push",
    senderId: "72d3162e-cc78-11e3-81ab-4c9367dc0958",
    replayOf: "dlv_before",
    status: 200,
    steps: STEPS,
    ...options,
  };
}

export function record(world: World, delivery: Delivery, refused = 1_000, entries = 1_000) {
  return world.store.recordDelivery(delivery, { ...RECORDER, entries, refused });
}

/** Ids of the matching ones, newest first. */
export async function list(world: World, query: Partial<DeliveryQuery> = {}): Promise<string[]> {
  return (await world.store.listDeliveries({ limit: 100, ...query })).items.map(({ deliveryId }) => deliveryId);
}
