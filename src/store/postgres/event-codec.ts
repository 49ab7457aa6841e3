import type { EventOrder, EventStatus, SystemEvent } from "#store/store.ts";
import { whole } from "./deliveries.ts";
import { keepKey, keepOptional, keepText, readOptional, readText } from "./texts.ts";

/** An event as its table has it. */
export type EventRow = {
  ordinal: number;
  event_id: string;
  agent: string;
  text: string;
  metadata: string | null;
  caller: string;
  /** `taken` is queued, too: a turn works on it. */
  state: EventStatus | "taken";
  attempts: number;
  created_at: number;
  ended_at: number | null;
  turn_id: string | null;
  reason: string | null;
  delivery_id: string | null;
};

export const readEvent = (row: EventRow): SystemEvent => ({
  eventId: row.event_id,
  agent: row.agent,
  text: readText(row.text),
  metadata: readOptional(row.metadata),
  caller: readText(row.caller),
  status: row.state === "taken" ? "queued" : row.state,
  attempts: row.attempts,
  createdAt: row.created_at,
  endedAt: row.ended_at ?? undefined,
  turnId: row.turn_id ?? undefined,
  reason: readOptional(row.reason),
  deliveryId: row.delivery_id ?? undefined,
  ordinal: row.ordinal,
});

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

/** An order as `queue_events` takes it. */
export const orderRow = (order: EventOrder) => {
  const { text, metadata, idempotency, limits } = order;
  return {
    id: order.eventId,
    agent: order.agent,
    text: keepText(text),
    metadata: keepOptional(metadata),
    size: Buffer.byteLength(text) + (metadata === undefined ? 0 : Buffer.byteLength(metadata)),
    caller: keepText(order.caller),
    now: order.now,
    beat: order.beatNow,
    key: idempotency && keepKey(idempotency.key),
    hash: idempotency?.hash,
    expires: idempotency?.expiresAt,
    events: whole(limits.events),
    bytes: whole(limits.storeBytes),
    keep: order.streamKeep,
    delivery: order.delivery?.deliveryId,
  };
};
