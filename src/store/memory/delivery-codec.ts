import type {
  Delivery,
  DeliveryAnswer,
  DeliveryOutcome,
  DeliveryStep,
  RecordedDelivery,
  Surface,
} from "#store/store.ts";
import { AS_TEXT, ID_BYTES, type PackedWriter, readIdTime, readTime } from "./packed.ts";
import { PackedReader, type WantedId } from "./packed-reader.ts";
import { decodeHead, encodeHead, type RecordedHead } from "./recorded-heads.ts";

const SURFACES = ["rest", "rpc", "hooks", "heartbeat"] as const satisfies readonly Surface[];

/**
 * What the recorder keeps of a delivery's outcome: `turn` is that of the turn, which has not ended, and `event` that of the event; the
 * others are outcomes themselves.
 */
export const KEPT = {
  turn: 0,
  event: 1,
  repeated: 2,
  unmatched: 3,
  refused: 4,
  challenge: 5,
  completed: 6,
  failed: 7,
  cancelled: 8,
  gone: 9,
} as const;
export type Kept = (typeof KEPT)[keyof typeof KEPT];
/** By what is kept. */
export const OUTCOMES = Object.keys(KEPT) as (keyof typeof KEPT)[];
const isAnswer = (kept: Kept): boolean => kept >= KEPT.repeated && kept <= KEPT.challenge;

/** Where its parts are that have a place of their own. */
const KEPT_AT = 0;
const KIND_AT = 1;
const ORDINAL_AT = 2;
const TIME_AT = 8;
const IDS_AT = 14;

/** Bits beside the surface. */
const HAS_TURN = 4;
const HAS_EVENT = 8;
/** It has what few have: what a webhook's sender or a mapping added, or steps. */
const HAS_MORE = 16;

const hasMore = ({ mapping, replayOf, senderId, status, steps }: Delivery): boolean =>
  steps.length > 0 || mapping !== undefined || senderId !== undefined || status !== undefined || replayOf !== undefined;

/** What stands in a delivery's record beside the delivery itself. */
export type DeliveryHead = {
  kept: Kept;
  ordinal: number;
  turnId: string | undefined;
  sessionId: string | undefined;
  eventId: string | undefined;
  /** Its head is kept elsewhere. */
  isApart: boolean;
};

/** Writes a delivery; its body comes last, so that it can be erased in place. */
export const encodeDelivery = (writer: PackedWriter, delivery: Delivery, head: DeliveryHead): void => {
  const { turnId, sessionId, eventId } = head;
  const more = hasMore(delivery);
  const kind = (turnId === undefined ? 0 : HAS_TURN) | (eventId === undefined ? 0 : HAS_EVENT) | (more ? HAS_MORE : 0);
  writer.byte(head.kept);
  writer.byte(SURFACES.indexOf(delivery.surface) | kind);
  writer.time(head.ordinal);
  writer.time(delivery.at);
  writer.id(delivery.deliveryId, "dlv_");
  writer.idLike(delivery.requestId, "req_", delivery.deliveryId);
  if (turnId !== undefined) {
    writer.idLike(turnId, "turn_", delivery.deliveryId);
    writer.text(sessionId ?? "");
  }
  if (eventId !== undefined) writer.idLike(eventId, "evt_", delivery.deliveryId);
  if (more) {
    writer.optional(delivery.mapping);
    writer.optional(delivery.senderId);
    writer.id(delivery.replayOf ?? "", "dlv_");
    writer.count(delivery.status ?? 0);
  }
  writer.count(delivery.bytes);
  if (!head.isApart) encodeHead(writer, delivery);
  if (more) encodeSteps(writer, delivery.steps);
  if (delivery.body) writer.blob(delivery.body);
};

const encodeSteps = (writer: PackedWriter, steps: readonly DeliveryStep[]): void => {
  writer.count(steps.length);
  for (const { at, name, detail } of steps) {
    writer.time(at);
    writer.text(name);
    writer.optional(detail);
  }
};

const NO_STEPS: readonly DeliveryStep[] = [];

/**
 * Reads what was written from `from` to `to`. `head` is given where it is kept apart. `hasBody`: the rest of it is the body, which the answer gets a copy of. With `isShort`
 * headers, steps and body are left out. Its outcome is `gone` where its turn or event has to tell it.
 */
export const decodeDelivery = (
  bytes: Buffer,
  from: number,
  to: number,
  { hasBody, isShort, head }: { hasBody: boolean; isShort: boolean; head: RecordedHead | undefined },
): RecordedDelivery => {
  const kept = keptAt(bytes, from);
  const kind = bytes[from + KIND_AT] as number;
  const reader = new PackedReader(bytes, from + IDS_AT);
  const deliveryId = reader.id("dlv_");
  const requestId = reader.idLike("req_", deliveryId);
  const turnId = (kind & HAS_TURN) === 0 ? undefined : reader.idLike("turn_", deliveryId);
  const sessionId = turnId === undefined ? undefined : reader.text() || undefined;
  const eventId = (kind & HAS_EVENT) === 0 ? undefined : reader.idLike("evt_", deliveryId);
  const more = (kind & HAS_MORE) !== 0;
  const mapping = more ? reader.optional() : undefined;
  const senderId = more ? reader.optional() : undefined;
  const replayOf = more ? reader.id("dlv_") || undefined : undefined;
  const status = more ? reader.count() || undefined : undefined;
  const length = reader.count();
  const { operation, method, path, address, caller, headers } = head ?? decodeHead(reader, isShort);
  const delivery: RecordedDelivery = {
    deliveryId,
    at: timeAt(bytes, from),
    surface: surfaceAt(bytes, from),
    operation,
    method,
    path,
    address,
    requestId,
    caller,
    bytes: length,
    headers,
    body: undefined,
    answer: isAnswer(kept) ? (OUTCOMES[kept] as DeliveryAnswer) : "accepted",
    status,
    mapping,
    replayOf,
    senderId,
    steps: NO_STEPS,
    turnId,
    eventId,
    sessionId,
    outcome: kept === KEPT.turn || kept === KEPT.event ? "gone" : (OUTCOMES[kept] as DeliveryOutcome),
  };
  if (isShort) return delivery;
  if (more) delivery.steps = decodeSteps(reader);
  if (hasBody) delivery.body = Buffer.from(bytes.subarray(reader.at, to));
  return delivery;
};

const decodeSteps = (reader: PackedReader): DeliveryStep[] =>
  Array.from({ length: reader.count() }, () => ({ at: reader.time(), name: reader.text(), detail: reader.optional() }));

export const keptAt = (bytes: Buffer, from: number): Kept => bytes[from + KEPT_AT] as Kept;

export const setKeptAt = (bytes: Buffer, from: number, kept: Kept): void => {
  bytes[from + KEPT_AT] = kept;
};

export const surfaceAt = (bytes: Buffer, from: number): Surface =>
  SURFACES[(bytes[from + KIND_AT] as number) & 3] as Surface;

export const ordinalAt = (bytes: Buffer, from: number): number => readTime(bytes, from + ORDINAL_AT);

export const timeAt = (bytes: Buffer, from: number): number => readTime(bytes, from + TIME_AT);

/** When its id was made; 0 when that is none of ours. */
export const idTimeAt = (bytes: Buffer, from: number): number =>
  bytes[from + IDS_AT] === AS_TEXT ? 0 : readIdTime(bytes, from + IDS_AT);

/** Whether the delivery at `from` has this id. */
export const isDelivery = (bytes: Buffer, from: number, { text, packed }: WantedId): boolean => {
  if (packed === undefined) return new PackedReader(bytes, from + IDS_AT).id("dlv_") === text;
  for (let n = ID_BYTES - 1; n >= 0; n--) if (bytes[from + IDS_AT + n] !== packed[n]) return false;
  return true;
};

/** What a delivery is asked for that stands among its ids. */
export type WantedDelivery = {
  id: WantedId | undefined;
  sessionId: string | undefined;
  mapping: string | undefined;
};

/** Whether the delivery at `from` has what is wanted. Nothing is made of it for that. */
export const hasWanted = (bytes: Buffer, from: number, { id, sessionId, mapping }: WantedDelivery): boolean => {
  const kind = bytes[from + KIND_AT] as number;
  const reader = new PackedReader(bytes, from + IDS_AT);
  let hasId = reader.nextIs(id, "dlv_");
  const likeAt = from + IDS_AT;
  hasId = reader.nextIs(id, "req_", likeAt) || hasId;
  let isOfSession = false;
  let isOfMapping = false;
  if ((kind & HAS_TURN) !== 0) {
    hasId = reader.nextIs(id, "turn_", likeAt) || hasId;
    const { at } = reader;
    isOfSession = reader.nextTextIs(sessionId);
    hasId ||= new PackedReader(bytes, at).nextTextIs(id?.text);
  }
  if ((kind & HAS_EVENT) !== 0) hasId = reader.nextIs(id, "evt_", likeAt) || hasId;
  if ((kind & HAS_MORE) !== 0) {
    isOfMapping = reader.byte() !== 0 && reader.nextTextIs(mapping);
    hasId = (reader.byte() !== 0 && reader.nextTextIs(id?.text)) || hasId;
  }
  return (
    (id === undefined || hasId) && (sessionId === undefined || isOfSession) && (mapping === undefined || isOfMapping)
  );
};
