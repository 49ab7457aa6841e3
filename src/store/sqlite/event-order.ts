import type { EventOrder } from "#store/store.ts";
import { KINDS, type PackedDelivery, packDelivery } from "./delivery-codec.ts";
import { encodeBody } from "./event-codec.ts";

/** An order on its way to the worker: flat, as names of properties would cost more than what they hold, and JSON where it is only kept. */
export type PackedEvent = readonly [
  now: number,
  eventId: string,
  agent: string,
  body: string,
  beatNow: number,
  key: string | undefined,
  hash: string | undefined,
  expiresAt: number | undefined,
  streamKeep: number,
  maxEvents: number,
  maxBytes: number,
  entries: number,
  bytes: number,
  refused: number,
  delivery: PackedDelivery | undefined,
];

export const packEvent = (order: EventOrder): PackedEvent => {
  const { now, eventId, agent, text, metadata, caller, idempotency, delivery, limits, recorder } = order;
  return [
    now,
    eventId,
    agent,
    encodeBody(text, metadata, caller, now),
    order.beatNow ? 1 : 0,
    idempotency?.key,
    idempotency?.hash,
    idempotency?.expiresAt,
    order.streamKeep,
    limits.events,
    limits.storeBytes,
    recorder.entries,
    recorder.bytes,
    recorder.refused,
    delivery && packDelivery(delivery, { eventId }, KINDS.event),
  ];
};

/** What the worker answers: the new event's place and the `seq` of its entry in the gateway's stream. */
export type QueuedPlace = readonly [ordinal: number, seq: number];
