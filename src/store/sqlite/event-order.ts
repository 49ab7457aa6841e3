import type { EventOrder } from "#store/store.ts";
import { KINDS, type PackedDelivery, packDelivery } from "./delivery-codec.ts";
import { encodeBody } from "./event-codec.ts";

/** What is the same for nearly all orders: those that are sent together share one. */
type PackedLimits = readonly [
  streamKeep: number,
  maxEvents: number,
  maxBytes: number,
  entries: number,
  bytes: number,
  refused: number,
];

/** An order on its way to the worker: flat, as names of properties would cost more than what they hold, and JSON where it is only kept. */
export type PackedEvent = readonly [
  now: number,
  eventId: string,
  agent: string,
  body: string,
  beatNow: boolean,
  limits: PackedLimits,
  delivery: PackedDelivery | undefined,
  idempotency: EventOrder["idempotency"],
];

let last: { limits: EventOrder["limits"]; recorder: EventOrder["recorder"]; packed: PackedLimits } | undefined;

const packLimits = ({ limits, recorder, streamKeep }: EventOrder): PackedLimits => {
  if (last?.limits !== limits || last.recorder !== recorder || last.packed[0] !== streamKeep) {
    const { entries, bytes, refused } = recorder;
    last = { limits, recorder, packed: [streamKeep, limits.events, limits.storeBytes, entries, bytes, refused] };
  }
  return last.packed;
};

export const packEvent = (order: EventOrder): PackedEvent => {
  const { now, eventId, agent, text, metadata, caller, delivery } = order;
  return [
    now,
    eventId,
    agent,
    encodeBody(text, metadata, caller, now),
    order.beatNow,
    packLimits(order),
    delivery && packDelivery(delivery, { eventId }, KINDS.event),
    order.idempotency,
  ];
};

/** What the worker answers: the new event's place and the `seq` of its entry in the gateway's stream. */
export type QueuedPlace = readonly [ordinal: number, seq: number];
