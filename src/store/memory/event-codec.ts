import type { EventStatus, SystemEvent } from "#store/store.ts";
import { AS_TEXT, ID_BYTES, type PackedWriter, readTime, writeTime } from "./packed.ts";
import { PackedReader } from "./packed-reader.ts";

/** `taken` is queued, too: a turn works on it. */
const STATES = ["queued", "taken", "handled", "dead"] as const;
export type EventState = (typeof STATES)[number];

/** Where its parts are that change in place. */
const STATE_AT = 0;
const ATTEMPTS_AT = 1;
const ORDINAL_AT = 2;
const ENDED_AT = 8;
const DELIVERY_AT = 14;
/** Its turn's id in bytes, or `AS_TEXT` when it has none, or one that is none of ours. */
const TURN_AT = 18;
const ID_AT = TURN_AT + ID_BYTES;
const MOST_ATTEMPTS = 255;

export const statusOf = (state: EventState): EventStatus => (state === "taken" ? "queued" : state);

/** Writes an event that was queued now. */
export const encodeEvent = (writer: PackedWriter, event: Omit<SystemEvent, "status">, deliverySlot: number): void => {
  writer.byte(STATES.indexOf("queued"));
  writer.byte(event.attempts);
  writer.time(event.ordinal);
  writer.time(0);
  writer.int32(deliverySlot);
  writer.blob(NO_TURN);
  writer.id(event.eventId, "evt_");
  writer.text("");
  writer.optional(event.reason);
  writer.text(event.agent);
  writer.text(event.caller);
  writer.time(event.createdAt);
  writer.id(event.deliveryId ?? "", "dlv_");
  writer.optional(event.metadata);
  writer.text(event.text);
};

const NO_TURN = new Uint8Array(ID_BYTES).fill(AS_TEXT);

/** Puts the id of its turn, one of ours, in its place. */
export const setTurnAt = (bytes: Buffer, from: number, turn: Uint8Array): void => {
  for (let n = 0; n < ID_BYTES; n++) bytes[from + TURN_AT + n] = turn[n] as number;
};

/** Writes it again with another reason, or with a turn whose id is none of ours. */
export const encodeTry = (
  writer: PackedWriter,
  { bytes, from, to }: { bytes: Buffer; from: number; to: number },
  change: { turnId: string } | { reason: string },
): void => {
  const reader = new PackedReader(bytes, from + ID_AT);
  reader.skipId();
  const turnAt = reader.at;
  const turn = "turnId" in change ? change.turnId : reader.text();
  if ("turnId" in change) reader.skipText();
  const reason = "reason" in change ? change.reason : reader.optional();
  if ("reason" in change) reader.skipOptional();
  writer.blob(bytes.subarray(from, from + TURN_AT));
  writer.blob("turnId" in change ? NO_TURN : bytes.subarray(from + TURN_AT, from + ID_AT));
  writer.blob(bytes.subarray(from + ID_AT, turnAt));
  writer.text(turn);
  writer.optional(reason);
  writer.blob(bytes.subarray(reader.at, to));
};

export const decodeEvent = (bytes: Buffer, from: number): SystemEvent => {
  const reader = new PackedReader(bytes, from + ID_AT);
  const state = stateAt(bytes, from);
  const eventId = reader.id("evt_");
  const otherTurn = reader.text() || undefined;
  const turnId = bytes[from + TURN_AT] === AS_TEXT ? otherTurn : new PackedReader(bytes, from + TURN_AT).id("turn_");
  const reason = reader.optional();
  const agent = reader.text();
  const caller = reader.text();
  const createdAt = reader.time();
  const deliveryId = reader.id("dlv_") || undefined;
  const metadata = reader.optional();
  return {
    eventId,
    agent,
    text: reader.text(),
    metadata,
    caller,
    status: statusOf(state),
    attempts: attemptsAt(bytes, from),
    createdAt,
    endedAt: state === "handled" || state === "dead" ? endedAt(bytes, from) : undefined,
    turnId,
    reason,
    deliveryId,
    ordinal: ordinalAt(bytes, from),
  };
};

export const stateAt = (bytes: Buffer, from: number): EventState =>
  STATES[bytes[from + STATE_AT] as number] as EventState;
export const setStateAt = (bytes: Buffer, from: number, state: EventState): void => {
  bytes[from + STATE_AT] = STATES.indexOf(state);
};
export const attemptsAt = (bytes: Buffer, from: number): number => bytes[from + ATTEMPTS_AT] as number;
export const setAttemptsAt = (bytes: Buffer, from: number, attempts: number): void => {
  bytes[from + ATTEMPTS_AT] = Math.min(attempts, MOST_ATTEMPTS);
};
export const ordinalAt = (bytes: Buffer, from: number): number => readTime(bytes, from + ORDINAL_AT);
export const setOrdinalAt = (bytes: Buffer, from: number, ordinal: number): void => {
  writeTime(bytes, from + ORDINAL_AT, ordinal);
};
export const endedAt = (bytes: Buffer, from: number): number => readTime(bytes, from + ENDED_AT);
export const setEndedAt = (bytes: Buffer, from: number, time: number): void => {
  writeTime(bytes, from + ENDED_AT, time);
};
export const deliverySlotAt = (bytes: Buffer, from: number): number => bytes.readInt32BE(from + DELIVERY_AT);
export const setDeliverySlotAt = (bytes: Buffer, from: number, slot: number): void => {
  bytes.writeInt32BE(slot, from + DELIVERY_AT);
};

export const isEvent = (bytes: Buffer, from: number, eventId: string): boolean =>
  new PackedReader(bytes, from + ID_AT).isId(eventId, "evt_");

/** Whether it is for this agent. */
export const isFor = (bytes: Buffer, from: number, agent: string): boolean => {
  const reader = new PackedReader(bytes, from + ID_AT);
  reader.skipId();
  reader.skipText();
  reader.skipOptional();
  return reader.isText(agent);
};
