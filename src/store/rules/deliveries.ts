import { GatewayError } from "#kit/errors.ts";
import { timePartOf } from "#kit/ids.ts";
import type {
  Delivery,
  DeliveryContent,
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
import { MOST_SCANNED, RECORDS_A_PIECE, scanBack } from "./pages.ts";
import { previewOf } from "./previews.ts";
import {
  type DeliveryRecord,
  isOfStranger,
  type Pieces,
  type Records,
  type Rule,
  type RuleInPieces,
} from "./records.ts";
import { findTurn } from "./turn-lookup.ts";

/** Strangers fill no more than this part of the recorder's bytes. */
const REFUSED_SHARE = 8;
/** The most deliveries that go at once, where the limits have become much smaller. The others follow. */
const MOST_AT_ONCE = 100;
/** The deliveries that are read first to find the place of one that is no longer stored. */
const FIRST_PIECE = 16;
/** The size of a listed delivery without its texts. */
const LISTED_BYTES = 600;
/** More steps than any delivery needs; then no more are kept. */
const MOST_STEPS = 200;

/** Keeps the delivery that began a turn or queued an event. It stays until that has ended. */
export function storeDelivery(
  records: Records,
  delivery: Delivery,
  work: DeliveryWork,
  recorder: RecorderLimits,
  endedOrder?: number,
): void {
  const { turnId, sessionId, messageId, eventId, agent } = work;
  const { headers, body } = delivery;
  const place = records.next("order");
  const record = {
    delivery: withoutContent(delivery),
    // Each character is a byte.
    contentBytes: headers.length + (body?.length ?? 0),
    place,
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
  records.contents.put({ place, headers, body });
  records.setBookmarks({ recorderBytes: recorder.bytes });
  if (isOfStranger(record)) deleteOldest(records, true, recorder.refused, recorder.bytes / REFUSED_SHARE);
  else deleteOldest(records, false, recorder.entries, recorder.bytes);
}

/** Lists all fields, because a rest pattern is slow for objects that are created in several places. */
function withoutContent(delivery: Delivery): DeliveryRecord["delivery"] {
  return {
    deliveryId: delivery.deliveryId,
    at: delivery.at,
    surface: delivery.surface,
    operation: delivery.operation,
    method: delivery.method,
    path: delivery.path,
    address: delivery.address,
    requestId: delivery.requestId,
    caller: delivery.caller,
    showsWords: delivery.showsWords,
    bytes: delivery.bytes,
    answer: delivery.answer,
    status: delivery.status,
    mapping: delivery.mapping,
    replayOf: delivery.replayOf,
    senderId: delivery.senderId,
    steps: delivery.steps,
  };
}

/** The reason of the refusal, from its step. */
function refusalOf({ steps }: Delivery): DeliveryError | undefined {
  const detail = steps.findLast(({ name }) => name === "request.refused")?.detail;
  if (detail === undefined) return undefined;
  const { error, detail: reason } = JSON.parse(detail) as { error: string; detail?: string | null };
  return { name: error, detail: reason ?? undefined };
}

export const recordDelivery: Rule<"recordDelivery"> = (records, delivery, recorder, work = {}) => {
  storeDelivery(records, delivery, work, recorder, records.next("order"));
  records.notify({ kind: "recorded", deliveryId: delivery.deliveryId });
};

/** Lets the oldest ended deliveries go, until the shelf is within its limits. */
function deleteOldest({ deliveries, contents }: Records, ofStrangers: boolean, entries: number, bytes: number): void {
  for (let deleted = 0; deleted < MOST_AT_ONCE; deleted++) {
    const shelf = deliveries.shelf(ofStrangers);
    if (shelf.size <= entries && shelf.bytes <= bytes) return;
    const oldest = deliveries.firstEnded(ofStrangers);
    if (!oldest) return;
    deliveries.delete(oldest);
    contents.delete(oldest.place);
  }
}

/** The delivery has another outcome, and its turn no new entries. */
export function notifyOutcome(records: Records, deliveryId: string | undefined): void {
  if (deliveryId !== undefined) records.notify({ kind: "outcome", deliveryId });
}

/** The delivery's work has ended: from now on it may be erased. */
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
  if (!record) return;
  const content = records.contents.find(record.place);
  if (content) records.contents.put({ ...content, body: undefined });
  records.deliveries.put({ ...withoutDetails(record), contentBytes: content?.headers.length ?? 0 });
}

function withoutDetails(record: DeliveryRecord): DeliveryRecord {
  const { delivery, refusal } = record;
  const steps = delivery.steps.map((step) => ({ ...step, detail: undefined }));
  return { ...record, delivery: { ...delivery, steps }, refusal: refusal && withoutDetail(refusal) };
}

function withoutDetail({ name }: DeliveryError): DeliveryError {
  return { name, detail: undefined };
}

export const getDelivery: Rule<"getDelivery"> = (records, deliveryId) => {
  const record = records.deliveries.find(deliveryId);
  if (!record) return undefined;
  const { headers = "", body } = records.contents.find(record.place) ?? {};
  // The session was deleted: the delivery will be erased soon, or repeats an earlier request.
  const isErased = record.turnId !== undefined && !findTurn(records, record.turnId);
  const shown = isErased ? withoutDetails(record) : record;
  return showDelivery(shown, resultOf(records, shown), { headers, body: isErased ? undefined : body });
};

function showDelivery(
  { delivery, turnId, eventId, sessionId, messageId, agent }: DeliveryRecord,
  result: DeliveryResult,
  content: DeliveryContent,
): RecordedDelivery {
  const shown = delivery.showsWords ? result : { ...result, preview: undefined, replyPreview: undefined };
  return Object.assign({ turnId, eventId, sessionId, messageId, agent }, delivery, content, shown);
}

function showListed(record: DeliveryRecord, result: DeliveryResult): RecordedDelivery {
  const { delivery } = record;
  return showDelivery({ ...record, delivery: { ...delivery, steps: [] } }, result, { headers: "", body: undefined });
}

/** The work of an earlier delivery counts for that: a repeat has only its message. */
function resultOf(records: Records, record: DeliveryRecord): DeliveryResult {
  const { delivery, turnId, eventId, refusal } = record;
  const event = eventId === undefined ? undefined : records.events.find(eventId);
  const turn = turnId === undefined || eventId !== undefined ? undefined : findTurn(records, turnId)?.turn;
  const preview = event ? previewOf(event.text) : turn?.preview;
  if (delivery.answer !== "accepted") {
    const isErased = turnId !== undefined && eventId === undefined && !turn;
    const error = isErased && refusal ? withoutDetail(refusal) : refusal;
    return { ...NOTHING_CAME, outcome: delivery.answer, preview, error };
  }
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
    const record = records.deliveries.find(deliveryId);
    return record ? showListed(record, resultOf(records, record)) : [];
  });

export const listDeliveries: RuleInPieces<"listDeliveries"> = function* (records, query) {
  const below = query.before === undefined ? undefined : yield* placeBefore(records, query);
  return yield* scanBack({
    before: (place, limit) => records.deliveries.before(Math.min(place, below ?? place), limit),
    placeOf: ({ place }) => place,
    show: (record) => {
      if (!matchesDelivery(query, record)) return undefined;
      const result = resultOf(records, record);
      return matchesResult(query, result) ? showListed(record, result) : undefined;
    },
    bytesOf: listedBytes,
    limit: query.limit,
    cursor: query.cursor,
    // For these filters, the work of each delivery is read.
    most: (query.outcome ?? query.announcement ?? query.channel) === undefined ? Infinity : MOST_SCANNED,
  });
};

/** The size of a listed delivery: unauthenticated requests with long paths could make a page large. */
function listedBytes({ path, senderId, preview, replyPreview, announcement, error }: RecordedDelivery): number {
  const texts = [path, senderId, preview, replyPreview, announcement?.reason, error?.detail];
  return texts.reduce((sum, text = "") => sum + text.length, LISTED_BYTES);
}

/** The place of a delivery. If it is no longer stored, the list continues from the time in its id. */
function* placeBefore(records: Records, { before = "", cursor }: DeliveryQuery): Pieces<number> {
  if (cursor !== undefined) {
    const errors = [{ pointer: "query:before", message: "cannot be used together with `cursor`" }];
    throw new GatewayError("invalid-request", "Send either `before` or `cursor`.", { errors });
  }
  const record = records.deliveries.find(before);
  if (record) return record.place;
  const time = timePartOf(before);
  if (time === undefined) throw refuse("delivery-not-found", `${before} is not the id of a delivery.`);
  for (let place = Infinity, size = FIRST_PIECE; ; size = Math.min(size * 2, RECORDS_A_PIECE)) {
    const found = records.deliveries.before(place, size);
    // Deliveries of the same millisecond may be listed twice; none is skipped.
    const next = found.find(({ delivery }) => (timePartOf(delivery.deliveryId) ?? "") <= time);
    if (next) return next.place + 1;
    if (found.length < size) return 0;
    place = found.at(-1)?.place ?? 0;
    yield;
  }
}

function matchesDelivery(query: DeliveryQuery, record: DeliveryRecord): boolean {
  const { surface, from = 0, to = Infinity, mapping, agent, sessionId, id } = query;
  const { delivery } = record;
  return (
    delivery.at >= from &&
    delivery.at < to &&
    (surface === undefined || delivery.surface === surface) &&
    (mapping === undefined || delivery.mapping === mapping) &&
    (agent === undefined || record.agent === agent) &&
    (sessionId === undefined || record.sessionId === sessionId) &&
    (id === undefined || hasId(record, id))
  );
}

function matchesResult({ outcome, announcement: state, channel }: DeliveryQuery, result: DeliveryResult): boolean {
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
