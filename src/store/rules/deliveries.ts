import { GatewayError } from "#kit/errors.ts";
import type {
  Delivery,
  DeliveryError,
  DeliveryQuery,
  DeliveryResult,
  DeliveryWork,
  RecordedDelivery,
  RecorderLimits,
  SystemEvent,
  Turn,
} from "#store/store.ts";
import { refuse } from "./limits.ts";
import { scanBack } from "./pages.ts";
import { previewOf } from "./previews.ts";
import { type DeliveryRecord, isOfStranger, type Records, type Rule, type RuleInPieces } from "./records.ts";
import { findTurn, listedTurn } from "./turn-lookup.ts";

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
    refusal: delivery.answer === "refused" ? refusalOf(delivery) : undefined,
  };
  records.deliveries.put(record);
  records.setBookmarks({ recorderBytes: recorder.bytes });
  if (isOfStranger(record)) deleteOldest(records, true, recorder.refused, recorder.bytes / REFUSED_SHARE);
  else deleteOldest(records, false, recorder.entries, recorder.bytes);
}

/** The reason of the refusal, from its step. */
function refusalOf({ steps }: Delivery): DeliveryError | undefined {
  const detail = steps.findLast(({ name }) => name === "request.refused")?.detail;
  if (detail === undefined) return undefined;
  const { error, detail: reason } = JSON.parse(detail) as { error: string; detail?: string | null };
  return { name: error, detail: reason ?? undefined };
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
  return Object.assign({ turnId, eventId, sessionId, messageId, agent }, delivery, resultOf(records, record));
}

function showListed(records: Records, record: DeliveryRecord): RecordedDelivery {
  return Object.assign(showDelivery(records, record), { headers: "", body: undefined, steps: [] });
}

/** The work of an earlier delivery counts for that: a repeat has only its message. */
function resultOf(records: Records, record: DeliveryRecord): DeliveryResult {
  const { delivery, turnId, eventId, refusal } = record;
  const event = eventId === undefined ? undefined : records.events.listed(eventId)?.event;
  const turn = turnId === undefined || eventId !== undefined ? undefined : listedTurn(records, turnId);
  const preview = event ? previewOf(event.text) : turn?.preview;
  if (delivery.answer !== "accepted") return { ...NOTHING_CAME, outcome: delivery.answer, preview, error: refusal };
  if (event) return resultOfEvent(event, preview);
  return turn ? resultOfTurn(turn) : { ...NOTHING_CAME, outcome: "gone" };
}

const NOTHING_CAME = {
  preview: undefined,
  replyPreview: undefined,
  endedAt: undefined,
  tokens: undefined,
  announcement: undefined,
  error: undefined,
};

function resultOfEvent({ status, endedAt, reason }: SystemEvent, preview: string | undefined): DeliveryResult {
  const error = status === "dead" ? ({ name: "turn-failed", detail: reason } as const) : undefined;
  return { ...NOTHING_CAME, outcome: status, preview, endedAt, error };
}

function resultOfTurn(turn: Turn): DeliveryResult {
  const { status: outcome, preview, replyPreview, endedAt, announcement, error } = turn;
  return { outcome, preview, replyPreview, endedAt, tokens: tokensOf(turn), announcement, error };
}

/** An agent that completed a turn without a token does not report them. */
function tokensOf({ status, endedAt, usage }: Turn): number | undefined {
  if (endedAt === undefined || !usage) return undefined;
  const tokens = usage.input + usage.output;
  return tokens === 0 && status === "completed" ? undefined : tokens;
}

export const readDeliveries: Rule<"readDeliveries"> = (records, deliveryIds) =>
  deliveryIds.flatMap((deliveryId) => {
    const record = records.deliveries.listed(deliveryId);
    return record ? showListed(records, record) : [];
  });

export const listDeliveries: RuleInPieces<"listDeliveries"> = function* (records, query) {
  const below = query.before === undefined ? undefined : placeBefore(records, query);
  return yield* scanBack({
    before: (place, limit) => records.deliveries.before(Math.min(place, below ?? place), limit),
    placeOf: ({ place }) => place,
    matches: (record) => matchesDelivery(records, query, record),
    show: (record) => showListed(records, record),
    bytesOf: () => 0,
    limit: query.limit,
    cursor: query.cursor,
  });
};

/** Refuses a delivery that is not stored, because its position is unknown. */
function placeBefore(records: Records, { before = "", cursor }: DeliveryQuery): number {
  if (cursor !== undefined) {
    const errors = [{ pointer: "query:before", message: "cannot be used together with `cursor`" }];
    throw new GatewayError("invalid-request", "Send either `before` or `cursor`.", { errors });
  }
  const record = records.deliveries.listed(before);
  if (!record)
    throw refuse("delivery-not-found", `The recorder has no delivery ${before}. Read the list from its start.`);
  return record.place;
}

function matchesDelivery(records: Records, query: DeliveryQuery, record: DeliveryRecord): boolean {
  const { surface, from = 0, to = Infinity, mapping, agent, sessionId, id } = query;
  const { delivery } = record;
  return (
    delivery.at >= from &&
    delivery.at < to &&
    (surface === undefined || delivery.surface === surface) &&
    (mapping === undefined || delivery.mapping === mapping) &&
    (agent === undefined || record.agent === agent) &&
    (sessionId === undefined || record.sessionId === sessionId) &&
    (id === undefined || hasId(record, id)) &&
    matchesResult(records, query, record)
  );
}

function matchesResult(records: Records, query: DeliveryQuery, record: DeliveryRecord): boolean {
  const { outcome, announcement: state, channel } = query;
  if (outcome === undefined && state === undefined && channel === undefined) return true;
  const result = resultOf(records, record);
  return (
    (outcome === undefined || result.outcome === outcome) &&
    (state === undefined || result.announcement?.state === state) &&
    (channel === undefined || result.announcement?.channel === channel)
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
