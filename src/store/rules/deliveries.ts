import type {
  Delivery,
  DeliveryOutcome,
  DeliveryQuery,
  DeliveryWork,
  RecordedDelivery,
  RecorderLimits,
} from "#store/store.ts";
import { scanBack } from "./pages.ts";
import { type DeliveryRecord, isOfStranger, type Records, type Rule, type RuleInPieces } from "./records.ts";
import { findTurn } from "./turn-lookup.ts";

/** Strangers fill no more than this part of the recorder's bytes. */
const REFUSED_SHARE = 8;
/** The most deliveries that go at once, where the limits have become much smaller. The others follow. */
const MOST_AT_ONCE = 100;
/** More steps than any delivery needs; then no more are kept. */
const MOST_STEPS = 200;

/** Keeps the delivery that began a turn or queued an event. It stays until that has ended. */
export function keepDelivery(
  records: Records,
  delivery: Delivery,
  work: DeliveryWork,
  recorder: RecorderLimits,
  endedOrder?: number,
): void {
  const { turnId, sessionId, messageId, eventId, agent } = work;
  const record = {
    delivery,
    place: records.next("order"),
    turnId,
    sessionId: turnId === undefined ? undefined : sessionId,
    messageId,
    eventId,
    agent,
    endedOrder,
    isOfCaller: (delivery.answer === "refused" && delivery.caller !== "") || undefined,
  };
  records.deliveries.put(record);
  records.setBookmarks({ recorderBytes: recorder.bytes });
  if (isOfStranger(record)) deleteOldest(records, true, recorder.refused, recorder.bytes / REFUSED_SHARE);
  else deleteOldest(records, false, recorder.entries, recorder.bytes);
}

export const recordDelivery: Rule<"recordDelivery"> = (records, delivery, recorder, work = {}) => {
  keepDelivery(records, delivery, work, recorder, records.next("order"));
  records.notify({ kind: "recorded", deliveryId: delivery.deliveryId });
};

/** Lets the oldest ended deliveries go, until the shelf is within its limits. */
function deleteOldest({ deliveries }: Records, ofStrangers: boolean, entries: number, bytes: number): void {
  for (let deleted = 0; deleted < MOST_AT_ONCE; deleted++) {
    const shelf = deliveries.shelf(ofStrangers);
    if (shelf.size <= entries && shelf.bytes <= bytes) return;
    const oldest = deliveries.firstEnded(ofStrangers);
    if (!oldest) return;
    deliveries.delete(oldest);
  }
}

/** The delivery has another outcome, and its turn no new entries. */
export function notifyOutcome(records: Records, deliveryId: string | undefined): void {
  if (deliveryId !== undefined) records.notify({ kind: "outcome", deliveryId });
}

/** The delivery's work has ended: from now on it may be let go. */
export function endDelivery(records: Records, deliveryId: string | undefined): void {
  const record = deliveryId === undefined ? undefined : records.deliveries.find(deliveryId);
  if (record && record.endedOrder === undefined) {
    records.deliveries.put({ ...record, endedOrder: records.next("order") });
  }
}

export const addDeliveryStep: Rule<"addDeliveryStep"> = (records, deliveryId, step) => {
  const record = records.deliveries.find(deliveryId);
  if (!record || record.delivery.steps.length >= MOST_STEPS) return;
  const { delivery } = record;
  records.deliveries.put({ ...record, delivery: { ...delivery, steps: [...delivery.steps, step] } });
};

/** Erases its content, also from its steps: its turn was erased. */
export function eraseContent(records: Records, deliveryId: string | undefined): void {
  const record = deliveryId === undefined ? undefined : records.deliveries.find(deliveryId);
  if (record) records.deliveries.put({ ...record, delivery: withoutContent(record.delivery) });
}

function withoutContent(delivery: Delivery): Delivery {
  return {
    ...delivery,
    body: undefined,
    steps: delivery.steps.map((step) => ({ ...step, detail: undefined })),
  };
}

export const getDelivery: Rule<"getDelivery"> = (records, deliveryId) => {
  const record = records.deliveries.find(deliveryId);
  if (!record) return undefined;
  // Its session is gone: it will be erased soon, or repeats an earlier request.
  const isErased = record.turnId !== undefined && !findTurn(records, record.turnId);
  return showDelivery(records, isErased ? { ...record, delivery: withoutContent(record.delivery) } : record);
};

function showDelivery(records: Records, record: DeliveryRecord): RecordedDelivery {
  const { delivery, turnId, eventId, sessionId, messageId, agent } = record;
  return { ...delivery, turnId, eventId, sessionId, messageId, agent, outcome: outcomeOf(records, record) };
}

function showListed(records: Records, record: DeliveryRecord): RecordedDelivery {
  return { ...showDelivery(records, record), headers: "", body: undefined, steps: [] };
}

function outcomeOf(records: Records, { delivery, turnId, eventId }: DeliveryRecord): DeliveryOutcome {
  if (delivery.answer !== "accepted") return delivery.answer;
  if (eventId !== undefined) return records.events.find(eventId)?.event.status ?? "gone";
  return (turnId === undefined ? undefined : findTurn(records, turnId)?.turn.status) ?? "gone";
}

export const readDeliveries: Rule<"readDeliveries"> = (records, deliveryIds) =>
  deliveryIds.flatMap((deliveryId) => {
    const record = records.deliveries.listed(deliveryId);
    return record ? showListed(records, record) : [];
  });

export const listDeliveries: RuleInPieces<"listDeliveries"> = (records, query) =>
  scanBack({
    before: (place, limit) => records.deliveries.before(place, limit),
    placeOf: ({ place }) => place,
    matches: (record) => matchesDelivery(records, query, record),
    show: (record) => showListed(records, record),
    bytesOf: () => 0,
    limit: query.limit,
    cursor: query.cursor,
  });

function matchesDelivery(records: Records, query: DeliveryQuery, record: DeliveryRecord): boolean {
  const { surface, outcome, from = 0, to = Infinity, mapping, agent, sessionId, id } = query;
  const { delivery } = record;
  return (
    delivery.at >= from &&
    delivery.at < to &&
    (surface === undefined || delivery.surface === surface) &&
    (mapping === undefined || delivery.mapping === mapping) &&
    (agent === undefined || record.agent === agent) &&
    (sessionId === undefined || record.sessionId === sessionId) &&
    (id === undefined || hasId(record, id)) &&
    (outcome === undefined || outcomeOf(records, record) === outcome)
  );
}

function hasId({ delivery, turnId, eventId, sessionId, messageId }: DeliveryRecord, id: string): boolean {
  return (
    delivery.deliveryId === id ||
    delivery.requestId === id ||
    delivery.senderId === id ||
    messageId === id ||
    turnId === id ||
    eventId === id ||
    sessionId === id
  );
}
