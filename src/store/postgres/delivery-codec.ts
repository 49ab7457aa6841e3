import { isUtf8 } from "node:buffer";
import type {
  Delivery,
  DeliveryAnswer,
  DeliveryOutcome,
  DeliveryStep,
  DeliveryWork,
  RecordedDelivery,
  Surface,
} from "#store/store.ts";
import { keepOptional, keepText, readOptional, readText } from "./texts.ts";

/** What nobody searches by, as one text. */
type Rest = Pick<
  Delivery,
  "operation" | "method" | "path" | "address" | "caller" | "headers" | "bytes" | "status" | "replayOf"
>;

/** `turn` and `event`: those tell the outcome. The others are outcomes themselves. */
export type Kept = "turn" | "event" | "gone" | Exclude<DeliveryAnswer, "accepted">;

export type DeliveryRow = {
  ordinal: number;
  delivery_id: string;
  at: number;
  surface: Surface;
  kept: Kept;
  request_id: string;
  turn_id: string | null;
  session_id: string | null;
  event_id: string | null;
  mapping: string | null;
  sender_id: string | null;
  record: string;
  steps: string | null;
  body: string | null;
  outcome: DeliveryOutcome;
  /** Its session was deleted. */
  is_erased: boolean;
};

/** What a row costs beside its texts. */
const ROW_BYTES = 300;

/** A delivery as `record_deliveries` takes it; `order` is the place of its order in the call. */
export const deliveryRow = (delivery: Delivery, of: DeliveryWork & { order: number; kept: Kept }) => {
  const { operation, method, path, address, caller, headers, bytes, status, replayOf, steps } = delivery;
  const rest: Rest = { operation, method, path, address, caller, headers, bytes, status, replayOf };
  const record = JSON.stringify(rest);
  const told = steps.length === 0 ? undefined : JSON.stringify(steps);
  const body = delivery.body && keepBody(delivery.body);
  return {
    order: of.order,
    id: keepText(delivery.deliveryId),
    at: delivery.at,
    surface: delivery.surface,
    kept: of.kept,
    request: keepText(delivery.requestId),
    turn: of.turnId,
    session: keepOptional(of.sessionId),
    event: of.eventId,
    mapping: keepOptional(delivery.mapping),
    sender: keepOptional(delivery.senderId),
    record,
    steps: told,
    stepcount: steps.length,
    body,
    bytes: ROW_BYTES + record.length + (told?.length ?? 0) + (body?.length ?? 0),
  };
};

/** As a text where it is one: most are, and PostgreSQL keeps texts at the least cost. */
const TEXT = "t";
const BASE64 = "b";

const keepBody = (bytes: Uint8Array): string => {
  const body = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  return isUtf8(body) && !body.includes(0) ? TEXT + body.toString() : BASE64 + body.toString("base64");
};

const readBody = (kept: string): Buffer => Buffer.from(kept.slice(1), kept.startsWith(TEXT) ? "utf8" : "base64");

const NO_STEPS: readonly DeliveryStep[] = [];

/** With `isShort` headers, steps and body are left out. */
export const readDelivery = (row: DeliveryRow, isShort: boolean): RecordedDelivery => {
  const rest = JSON.parse(row.record) as Rest;
  const { kept, body } = row;
  return {
    deliveryId: readText(row.delivery_id),
    at: row.at,
    surface: row.surface,
    operation: rest.operation,
    method: rest.method,
    path: rest.path,
    address: rest.address,
    requestId: readText(row.request_id),
    caller: rest.caller,
    headers: isShort ? "" : rest.headers,
    body: isShort || row.is_erased || body === null ? undefined : readBody(body),
    bytes: rest.bytes,
    answer: kept === "turn" || kept === "event" || kept === "gone" ? "accepted" : kept,
    status: rest.status,
    mapping: readOptional(row.mapping),
    replayOf: rest.replayOf,
    senderId: readOptional(row.sender_id),
    steps: isShort || row.steps === null ? NO_STEPS : readSteps(row.steps, row.is_erased),
    turnId: row.turn_id ?? undefined,
    eventId: row.event_id ?? undefined,
    sessionId: readOptional(row.session_id),
    outcome: row.outcome,
  };
};

const readSteps = (steps: string, isErased: boolean): DeliveryStep[] =>
  (JSON.parse(steps) as { at: number; name: string; detail?: string }[]).map(({ at, name, detail }) => ({
    at,
    name,
    detail: isErased ? undefined : detail,
  }));
