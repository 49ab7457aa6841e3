import type { InboundStore } from "#store/inbound-store.ts";
import type { EventOrder, GatewayEntry, Page, RecordedDelivery, Store, SystemEvent } from "#store/store.ts";
import { packDelivery } from "./delivery-codec.ts";
import { type EventRow, readEvent, readWaiting } from "./event-codec.ts";
import { packEvent, type QueuedPlace } from "./event-order.ts";
import type { Link } from "./link.ts";
import type { WaitingEvents } from "./worker/events.ts";

type InboundCalls = InboundStore &
  Pick<
    Store,
    | "countUsage"
    | "readUsage"
    | "sumUsage"
    | "appendGatewayEntry"
    | "readGatewayEntries"
    | "setPaused"
    | "listKeys"
    | "createKey"
    | "replaceKey"
    | "revokeKey"
    | "touchKey"
  >;

const NO_WORK = {};

/** The inbound half of the store, as calls of the worker. */
export const inboundCalls = (link: Link): InboundCalls => ({
  queueEvent: (order) =>
    link.call("queueEvent", packEvent(order), (answer: QueuedPlace | EventRow) => settleEvent(link, order, answer)),
  findEventReplay: (key, now) => link.call("findEventReplay", { key, now }, readEventIf),
  readQueuedEvents: (query) => readQueued(link, query),
  getEvent: (eventId) => link.call("getEvent", eventId, readEventIf),
  listEvents: (query) =>
    link.call("listEvents", query, ({ items, next }: Page<EventRow>) => ({ items: items.map(readEvent), next })),
  requeueEvent: (eventId, requeue) => link.call("requeueEvent", { eventId, ...requeue }, readEventIf),
  failQueuedEvents: (agent, reason, end) => link.call("failQueuedEvents", { agent, reason, ...end }),

  planBeat: (agent, plan) => link.call("planBeat", { agent, ...plan }),
  readBeat: (agent) => link.call("readBeat", { agent, now: link.clock.now() }),
  claimBeats: (request) => link.call("claimBeats", request),
  extendBeat: (claim, leaseMs) => link.call("extendBeat", { claim, leaseMs }),
  endBeat: (claim, end) => link.call("endBeat", { claim, ...end }),

  setPaused: (agent, order) => link.call("setPaused", { agent, ...order }),

  claimAnnouncements: async ({ freeOf, ...request }) => {
    const channels = await link.call<string[]>("waitingChannels", undefined);
    const free = channels.map((channel) => [channel, freeOf(channel)] as const);
    return await link.call("claimAnnouncements", { ...request, free });
  },
  endAnnouncement: (claim, end) => link.call("endAnnouncement", { claim, ...end }),

  recordDelivery: (delivery, recorder, work = NO_WORK) =>
    link.call("recordDelivery", { delivery: packDelivery(delivery, work), recorder }),
  addDeliveryStep: (deliveryId, step) => link.call("addDeliveryStep", { deliveryId, step }),
  getDelivery: (deliveryId) => link.call("getDelivery", deliveryId, readDelivery),
  listDeliveries: (query) => link.call("listDeliveries", query),

  countUsage: (used) => link.call("countUsage", used),
  readUsage: (query) => link.call("readUsage", query),
  sumUsage: (query) => link.call("sumUsage", query),
  appendGatewayEntry: (news, append) => link.call("appendGatewayEntry", { news, ...append }),
  readGatewayEntries: (query) => link.call("readGatewayEntries", query),

  listKeys: () => link.call("listKeys", undefined),
  createKey: (key) => link.call("createKey", key),
  replaceKey: (keyId, key, endsAt) => link.call("replaceKey", { keyId, key, endsAt }),
  revokeKey: (keyId) => link.call("revokeKey", keyId),
  touchKey: (keyId, now) => link.call("touchKey", { keyId, now }),
});

/** Bytes come from the other thread as an array of numbers. */
const readDelivery = (delivery: RecordedDelivery | undefined): RecordedDelivery | undefined => {
  if (!delivery?.body) return delivery;
  const { buffer, byteOffset, length } = delivery.body;
  return { ...delivery, body: Buffer.from(buffer, byteOffset, length) };
};

/** Tells of an event that was queued, and makes it of its order: both would cost more to send than to keep here. */
const settleEvent = (
  link: Link,
  order: EventOrder,
  answer: QueuedPlace | EventRow,
): { event: SystemEvent; replayed: boolean } => {
  if (!isPlace(answer)) return { event: readEvent(answer), replayed: true };
  const { eventId, agent, text, metadata, caller, now: at } = order;
  const [ordinal, seq] = answer;
  const entries: GatewayEntry[] = [{ seq, at, name: "event.queued", eventId, agentName: agent }];
  link.tell((watcher) => watcher.gatewayEntries(entries));
  const event: SystemEvent = {
    eventId,
    agent,
    text,
    metadata,
    caller,
    status: "queued",
    attempts: 0,
    createdAt: at,
    endedAt: undefined,
    turnId: undefined,
    reason: undefined,
    deliveryId: order.delivery?.deliveryId,
    ordinal,
  };
  return { event, replayed: false };
};

const isPlace = (answer: QueuedPlace | EventRow): answer is QueuedPlace => answer.length === 2;

const readEventIf = (text: EventRow | undefined): SystemEvent | undefined => text && readEvent(text);

/** By so much texts are longer where they are kept. */
const MORE_TEXT = 16_384;

type Waiting = { events: SystemEvent[]; last: number | undefined };

const waitingOf = ({ batches, last }: WaitingEvents): Waiting => ({ events: batches.flatMap(readWaiting), last });

/** Nearly always with one call. */
const readQueued = async (
  link: Link,
  { agent, after, through, limit, bytes }: Parameters<InboundStore["readQueuedEvents"]>[0],
): Promise<SystemEvent[]> => {
  const events: SystemEvent[] = [];
  let left = bytes;
  for (let last: number | undefined = after; last !== undefined && events.length < limit; ) {
    const query = { agent, after: last, through, limit: limit - events.length, bytes: left + MORE_TEXT };
    const page: Waiting = await link.call("readQueuedEvents", query, waitingOf);
    for (const event of page.events) {
      left -= Buffer.byteLength(event.text) + Buffer.byteLength(event.metadata ?? "");
      if (left < 0 && events.length > 0) return events;
      events.push(event);
    }
    last = page.last;
  }
  return events;
};
