import type {
  DeliveryRecord,
  EventRecord,
  KeyRecord,
  SessionRecord,
  SummaryRecord,
  TurnRecord,
} from "#store/rules/records.ts";
import type { Entry } from "#store/store.ts";
import { COUNT_BYTES } from "#store/usage-counts.ts";

// The memory of records without their texts, as `npm run bench` measures it (P10).
const SESSION_BYTES = 800;
const TURN_BYTES = 640;
const OPEN_BYTES = 200;
const ENTRY_BYTES = 110;
const ANNOUNCEMENT_BYTES = 500;
const EVENT_BYTES = 400;
const SUMMARY_BYTES = 200;
const KEY_BYTES = 200;
const DELIVERY_BYTES = 500;
const STEP_BYTES = 100;

const textBytes = (text: string | undefined): number => (text === undefined ? 0 : Buffer.byteLength(text));

export const weighSession = ({ session: { sessionId, channel, userId } }: SessionRecord): number =>
  SESSION_BYTES + sessionId.length + channel.length + userId.length;

/** The reply is its entry's text. */
export const weighTurn = ({ turn, open }: TurnRecord): number =>
  TURN_BYTES + textBytes(turn.error?.detail) + (open ? OPEN_BYTES : 0);

/** The end of a turn names the reply that the entry before it holds. */
export const weighEntry = (entry: Entry): number => {
  if (entry.name === "message.created") return ENTRY_BYTES + textBytes(entry.text) + textBytes(entry.context);
  if (entry.name !== "message.completed") return ENTRY_BYTES;
  return ENTRY_BYTES + textBytes(entry.text) + textBytes(entry.toolCalls && JSON.stringify(entry.toolCalls));
};

export const weighSummary = ({ summary, except }: SummaryRecord): number =>
  SUMMARY_BYTES + textBytes(summary.text) + except.length * 8;

export const weighEvent = ({ event }: EventRecord): number =>
  EVENT_BYTES + textBytes(event.text) + textBytes(event.metadata) + textBytes(event.reason);

export const weighAnnouncement = (): number => ANNOUNCEMENT_BYTES;

export const weighCount = (): number => COUNT_BYTES;

export const weighKey = ({ key, hash }: KeyRecord): number => KEY_BYTES + textBytes(key) + textBytes(hash);

export const weighDelivery = ({ delivery }: DeliveryRecord): number => {
  const { headers, path, body, steps } = delivery;
  // Headers have characters of one byte each.
  let bytes = DELIVERY_BYTES + headers.length + textBytes(path) + (body?.length ?? 0);
  for (const { detail } of steps) bytes += STEP_BYTES + textBytes(detail);
  return bytes;
};
