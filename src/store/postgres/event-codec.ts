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
  state: EventStatus;
  attempts: number;
  created_at: number;
  ended_at: number | null;
  turn_id: string | null;
  /** The turn that works on it; not asked for where none can. */
  taken_by?: string | null;
  reason: string | null;
  delivery_id: string | null;
};

export const readEvent = (row: EventRow): SystemEvent => ({
  eventId: row.event_id,
  agent: row.agent,
  text: readText(row.text),
  metadata: readOptional(row.metadata),
  caller: readText(row.caller),
  status: row.state,
  attempts: row.attempts,
  createdAt: row.created_at,
  endedAt: row.ended_at ?? undefined,
  turnId: row.taken_by ?? row.turn_id ?? undefined,
  reason: readOptional(row.reason),
  deliveryId: row.delivery_id ?? undefined,
  ordinal: row.ordinal,
});

/** An order as `keep_events` takes it. */
export const eventRow = ({ eventId, agent, text, metadata, caller, now, delivery }: EventOrder) => ({
  id: eventId,
  agent,
  text: keepText(text),
  metadata: keepOptional(metadata),
  size: sizeOf(text, metadata),
  caller: keepText(caller),
  now,
  delivery: delivery?.deliveryId,
});

const sizeOf = (text: string, metadata: string | undefined): number =>
  Buffer.byteLength(text) + (metadata === undefined ? 0 : Buffer.byteLength(metadata));

/** An order as `queue_events` takes it. */
export const orderRow = (order: EventOrder) => {
  const { idempotency, limits } = order;
  return {
    ...eventRow(order),
    beat: order.beatNow,
    key: idempotency && keepKey(idempotency.key),
    hash: idempotency?.hash,
    expires: idempotency?.expiresAt,
    events: whole(limits.events),
    bytes: whole(limits.storeBytes),
    keep: order.streamKeep,
  };
};

/** What an order tells on the gateway's stream. */
export const queuedNews = ({ eventId, agent }: EventOrder) => ({
  name: "event.queued" as const,
  eventId,
  agentName: agent,
});
