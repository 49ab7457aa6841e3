import { isAscii } from "node:buffer";
import type {
  Delivery,
  DeliveryAnswer,
  DeliveryOutcome,
  DeliveryStep,
  DeliveryWork,
  RecordedDelivery,
  Surface,
} from "#store/store.ts";
import { quoteIf } from "./json.ts";

/** What tells a delivery's outcome: its turn, its event, or its answer. */
export const KINDS = { turn: 0, event: 1, repeated: 2, unmatched: 3, refused: 4, challenge: 5, gone: 6 } as const;

/** The least and the most of the kinds that may have an outcome. */
export const KINDS_OF: Readonly<Record<DeliveryOutcome, readonly [least: number, most: number]>> = {
  queued: [KINDS.turn, KINDS.event],
  running: [KINDS.turn, KINDS.turn],
  completed: [KINDS.turn, KINDS.turn],
  failed: [KINDS.turn, KINDS.turn],
  cancelled: [KINDS.turn, KINDS.turn],
  handled: [KINDS.event, KINDS.event],
  dead: [KINDS.event, KINDS.event],
  repeated: [KINDS.repeated, KINDS.repeated],
  unmatched: [KINDS.unmatched, KINDS.unmatched],
  refused: [KINDS.refused, KINDS.refused],
  challenge: [KINDS.challenge, KINDS.challenge],
  gone: [KINDS.turn, KINDS.gone],
};

/** What a list shows. */
type Info = [
  deliveryId: string,
  at: number,
  surface: Surface,
  operation: string,
  method: string,
  path: string,
  address: string,
  requestId: string,
  caller: string,
  bytes: number,
  answer: DeliveryAnswer,
  status: number | null,
  mapping: string | null,
  replayOf: string | null,
  senderId: string | null,
  turnId: string | null,
  sessionId: string | null,
  eventId: string | null,
];
type KeptStep = [at: number, name: string, detail: string | null];
/** Plain text stays text where it is long; other bytes are in base64. */
type KeptBody = string | [base64: string] | null;

/** A delivery as it is kept, the whole of it in one. Steps that came later are kept beside it. */
export type KeptDelivery = [kind: number, info: Info, headers: string, steps: KeptStep[], body: KeptBody];

/** What those that come one after another mostly have alike: each that differs is kept once for all of a row. */
export type SharedPart = [
  surface: Surface,
  operation: string,
  method: string,
  path: string,
  address: string,
  caller: string,
  answer: DeliveryAnswer,
  headers: string,
];
/** What is one delivery's own. */
type Own = [
  deliveryId: string,
  at: number,
  requestId: string,
  bytes: number,
  status: number | null,
  mapping: string | null,
  replayOf: string | null,
  senderId: string | null,
  turnId: string | null,
  sessionId: string | null,
  eventId: string | null,
];
/** A delivery without what it shares, in JSON. */
export type OwnPart = [kind: number, own: Own, steps: KeptStep[], body: KeptBody];

/** A `SharedPart` in JSON, and its bytes. Those that are sent together have one of it, as they have it alike. */
export type PackedShared = readonly [text: string, bytes: number];
/** A delivery on its way to the worker: what that asks for, and an `OwnPart` in JSON. */
export type PackedDelivery = readonly [deliveryId: string, kind: number, shared: PackedShared, text: string];

/** Of a delivery that begins the work of `kind`, or has begun none. */
export const packDelivery = (
  delivery: Delivery,
  work: DeliveryWork,
  kind = kindOf(delivery.answer),
): PackedDelivery => {
  const { deliveryId, at, requestId, bytes, status, mapping, replayOf, senderId } = delivery;
  const sent = `${quoteIf(mapping)},${quoteIf(replayOf)},${quoteIf(senderId)}`;
  const started = `${quoteIf(work.turnId)},${quoteIf(work.sessionId)},${quoteIf(work.eventId)}`;
  const own = `[${JSON.stringify(deliveryId)},${at},${JSON.stringify(requestId)},${bytes},${status ?? null},${sent},${started}]`;
  const text = `[${kind},${own},[${delivery.steps.map(jsonOfStep).join(",")}],${jsonOfBody(delivery.body)}]`;
  return [deliveryId, kind, sharedOf(delivery), text];
};

let last: { of: Delivery; packed: PackedShared } | undefined;

/** Mostly that of the delivery before. */
const sharedOf = (delivery: Delivery): PackedShared => {
  if (last === undefined || !isAlike(last.of, delivery)) {
    const { surface, operation, method, path, address, caller, answer, headers } = delivery;
    const shared: SharedPart = [surface, operation, method, path, address, caller, answer, headers];
    const text = JSON.stringify(shared);
    last = { of: { ...delivery, body: undefined }, packed: [text, Buffer.byteLength(text)] };
  }
  return last.packed;
};

const isAlike = (one: Delivery, other: Delivery): boolean =>
  one.headers === other.headers &&
  one.path === other.path &&
  one.address === other.address &&
  one.caller === other.caller &&
  one.operation === other.operation &&
  one.method === other.method &&
  one.answer === other.answer &&
  one.surface === other.surface;

/** The whole of a delivery, of its two parts. */
export const joinParts = ([kind, own, steps, body]: OwnPart, shared: SharedPart): KeptDelivery => {
  const [deliveryId, at, requestId, bytes, ...rest] = own;
  const [surface, operation, method, path, address, caller, answer, headers] = shared;
  const way = [surface, operation, method, path, address] as const;
  return [kind, [deliveryId, at, ...way, requestId, caller, bytes, answer, ...rest], headers, steps, body];
};

const kindOf = (answer: DeliveryAnswer): number => KINDS[answer === "accepted" ? "gone" : answer];

/** So short a body is kept in base64 whatever it is: to escape it, as JSON in JSON, takes longer than all else of its delivery. */
const SHORT = 1_024;

const jsonOfBody = (body: Uint8Array | undefined): string => {
  if (!body) return "null";
  const bytes = Buffer.from(body.buffer, body.byteOffset, body.length);
  if (bytes.length > SHORT && isAscii(bytes) && !bytes.includes(0)) return JSON.stringify(bytes.toString("latin1"));
  return `["${bytes.toString("base64")}"]`;
};

let lastStep = { name: "", detail: undefined as string | undefined, rest: '"",null' };

/** Most deliveries have the same steps as the one before, at another time. */
const jsonOfStep = ({ at, name, detail }: DeliveryStep): string => {
  if (name !== lastStep.name || detail !== lastStep.detail) {
    lastStep = { name, detail, rest: `${JSON.stringify(name)},${quoteIf(detail)}` };
  }
  return `[${at},${lastStep.rest}]`;
};

export const readBody = (body: KeptBody): Uint8Array | undefined => {
  if (body === null) return undefined;
  return typeof body === "string" ? Buffer.from(body, "latin1") : Buffer.from(body[0], "base64");
};

export const packSteps = (steps: readonly DeliveryStep[]): KeptStep[] =>
  steps.map(({ at, name, detail }) => [at, name, detail ?? null]);

export const readSteps = (steps: readonly KeptStep[]): DeliveryStep[] =>
  steps.map(([at, name, detail]) => ({ at, name, detail: detail ?? undefined }));

/** What is left of one that is erased: what came in it is gone, and what its steps tell of that. */
export const erasedOf = ([kind, info, headers, steps]: KeptDelivery): KeptDelivery => [
  kind,
  info,
  headers,
  withoutDetails(steps),
  null,
];

export const withoutDetails = (steps: readonly KeptStep[]): KeptStep[] => steps.map(([at, name]) => [at, name, null]);

/** As a list shows it. Its outcome is `gone` where its turn or event has to tell it. */
export const readInfo = ([kind, info]: KeptDelivery): RecordedDelivery => {
  const [deliveryId, at, surface, operation, method, path, address, requestId, caller, bytes, answer] = info;
  const [status, mapping, replayOf, senderId, turnId, sessionId, eventId] = info.slice(11) as Rest;
  return {
    deliveryId,
    at,
    surface,
    operation,
    method,
    path,
    address,
    requestId,
    caller,
    headers: "",
    body: undefined,
    bytes,
    answer,
    status: status ?? undefined,
    mapping: mapping ?? undefined,
    replayOf: replayOf ?? undefined,
    senderId: senderId ?? undefined,
    steps: [],
    turnId: turnId ?? undefined,
    eventId: eventId ?? undefined,
    sessionId: sessionId ?? undefined,
    outcome: kind >= KINDS.repeated && kind <= KINDS.challenge ? (answer as DeliveryOutcome) : "gone",
  };
};
type Rest = [number | null, string | null, string | null, string | null, string | null, string | null, string | null];
