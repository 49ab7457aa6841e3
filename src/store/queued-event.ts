import type { EventOrder, SystemEvent } from "./store.ts";

/** The event that an order has queued. */
export const queuedEvent = (order: EventOrder, ordinal: number): SystemEvent => ({
  eventId: order.eventId,
  agent: order.agent,
  text: order.text,
  metadata: order.metadata,
  caller: order.caller,
  status: "queued",
  attempts: 0,
  createdAt: order.now,
  endedAt: undefined,
  turnId: undefined,
  reason: undefined,
  deliveryId: order.delivery?.deliveryId,
  ordinal,
});
