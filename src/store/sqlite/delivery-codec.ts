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
/** What only the whole delivery has beside. */
type More = [headers: string, steps: KeptStep[]];
type KeptStep = [at: number, name: string, detail: string | null];

/** A delivery as it goes to the worker and into the file: what is only kept is JSON. A body that is plain text goes as that. */
export type PackedDelivery = readonly [
  deliveryId: string,
  kind: number,
  info: string,
  more: string,
  body: string | Uint8Array | null,
];

/** Of a delivery that begins the work of `kind`, or has begun none. */
export const packDelivery = (
  delivery: Delivery,
  work: DeliveryWork,
  kind = kindOf(delivery.answer),
): PackedDelivery => {
  const info: Info = [
    delivery.deliveryId,
    delivery.at,
    delivery.surface,
    delivery.operation,
    delivery.method,
    delivery.path,
    delivery.address,
    delivery.requestId,
    delivery.caller,
    delivery.bytes,
    delivery.answer,
    delivery.status ?? null,
    delivery.mapping ?? null,
    delivery.replayOf ?? null,
    delivery.senderId ?? null,
    work.turnId ?? null,
    work.sessionId ?? null,
    work.eventId ?? null,
  ];
  const more = encodeMore(delivery.headers, delivery.steps);
  return [delivery.deliveryId, kind, JSON.stringify(info), more, packBody(delivery.body)];
};

const kindOf = (answer: DeliveryAnswer): number => KINDS[answer === "accepted" ? "gone" : answer];

/** Bytes of their own: a view of others would take all of those along to the worker. */
const packBody = (body: Uint8Array | undefined): string | Uint8Array | null => {
  if (!body) return null;
  if (isAscii(body) && !body.includes(0))
    return Buffer.from(body.buffer, body.byteOffset, body.length).toString("latin1");
  return Uint8Array.prototype.slice.call(body);
};

export const readBody = (body: string | Buffer | null): Uint8Array | undefined =>
  typeof body === "string" ? Buffer.from(body, "latin1") : (body ?? undefined);

export const encodeMore = (headers: string, steps: readonly DeliveryStep[]): string => {
  const kept = steps.map(({ at, name, detail }): KeptStep => [at, name, detail ?? null]);
  return JSON.stringify([headers, kept] satisfies More);
};

export const decodeMore = (more: string): { headers: string; steps: DeliveryStep[] } => {
  const [headers, steps] = JSON.parse(more) as More;
  return { headers, steps: steps.map(([at, name, detail]) => ({ at, name, detail: detail ?? undefined })) };
};

/** As a list shows it. Its outcome is `gone` where its turn or event has to tell it. */
export const decodeInfo = (kind: number, text: string): RecordedDelivery => {
  const info = JSON.parse(text) as Info;
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
