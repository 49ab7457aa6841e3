/** The declarations of all tables. */
import { createHash } from "node:crypto";
import { isOfWebhook } from "#kit/ids.ts";
import { weigherOf } from "#store/fields.ts";
import { DELIVERY, EVENT } from "#store/inbound.ts";
import { NOTIFICATION } from "#store/notifications.ts";
import { SESSION, TURN } from "#store/records.ts";
import type { BudgetRecord } from "#store/rules/budget-records.ts";
import { bytesOfGroup } from "#store/rules/group-records.ts";
import { laneOf } from "#store/rules/leases.ts";
import {
  type AgentCount,
  type AgentRecord,
  type ApiKeyRecord,
  type BeatRecord,
  type ContentRecord,
  type DeliveryRecord,
  isHeld,
  isOfStranger,
  KEY,
  type KeyRecord,
  type LateAttempt,
  type Lease,
  type OpenTurnRecord,
  type OutgoingRecord,
  type SessionRecord,
  type SummaryRecord,
  type TurnRecord,
} from "#store/rules/records.ts";
import { idleAt } from "#store/rules/retention.ts";
import type { ScheduleRecord } from "#store/rules/schedule-records.ts";
import type { ShareRecord } from "#store/rules/share-records.ts";
import type { Entry, NotificationRecord, SystemEvent, UsageCount, UsageCounts } from "#store/store.ts";
import { COUNT_BYTES } from "#store/usage-counts.ts";
import type { Layout } from "./table.ts";

// The memory of each record without its texts, in bytes (P10).
const SESSION_BYTES = 800;
const TURN_BYTES = 640;
const OPEN_BYTES = 200;
const JOINED_BYTES = 40;
const ENTRY_BYTES = 110;
const MESSAGE_BYTES = 500;
const EVENT_BYTES = 400;
const SUMMARY_BYTES = 200;
const KEY_BYTES = 200;
const DELIVERY_BYTES = 500;
const NOTIFICATION_BYTES = 500;

function textBytes(text: string | undefined): number {
  return text === undefined ? 0 : Buffer.byteLength(text);
}

/** The reply of a turn's end is not counted, because the entry before it has the same text. */
export function weighEntry(entry: Entry): number {
  if (entry.name === "message.created") return ENTRY_BYTES + textBytes(entry.text) + textBytes(entry.context);
  if (entry.name !== "message.completed") return ENTRY_BYTES;
  return ENTRY_BYTES + textBytes(entry.text) + textBytes(entry.toolCalls && JSON.stringify(entry.toolCalls));
}

const weighTurn = weigherOf(TURN_BYTES, TURN);

const weighFacts = weigherOf(DELIVERY_BYTES, DELIVERY);

export function weighDelivery({ delivery, contentBytes, refusal }: DeliveryRecord): number {
  return weighFacts(delivery) + contentBytes + textBytes(refusal?.detail);
}

// Tables that may become large. An engine may store them in a file.

const weighSession = weigherOf(SESSION_BYTES, SESSION);
const MINUTE = 60_000;

export function minuteOf(time: number): number {
  return Math.floor(time / MINUTE);
}

export const SESSIONS = {
  table: "sessions",
  key: "session_id",
  columns: {
    ordinal: ["integer", ({ session }) => session.ordinal, "fixed"],
    session_id: ["text", ({ session }) => session.sessionId],
    agent: ["text", ({ session }) => session.agent, "fixed"],
    is_webhook: ["boolean", ({ session }) => isOfWebhook(session.sessionId), "fixed"],
    idle_at: ["integer", idleAt],
    idle_minute: ["integer", (record) => minuteOf(idleAt(record))],
  },
  orders: { all: { by: "ordinal" }, ofAgent: { by: "ordinal", of: "agent" } },
  weigh: ({ session }) => weighSession(session),
} satisfies Layout<SessionRecord>;

/** Ended turns, without their replies. The journal has the replies. */
export const TURNS = {
  table: "turns",
  key: "turn_id",
  columns: { turn_id: ["text", ({ turn }) => turn.turnId] },
  orders: { all: { by: "turn_id" } },
  weigh: ({ turn, joined }) => weighTurn(turn) + (joined ? joined.length * JOINED_BYTES : 0),
} satisfies Layout<TurnRecord>;

export const EVENTS = {
  table: "events",
  key: "event_id",
  columns: {
    event_id: ["text", ({ eventId }) => eventId],
    ordinal: ["integer", ({ ordinal }) => ordinal],
    agent: ["text", ({ agent }) => agent, "fixed"],
    is_queued: ["boolean", ({ status }) => status === "queued"],
    ended_at: ["integer", ({ endedAt }) => endedAt],
  },
  orders: {
    all: { by: "ordinal" },
    queued: { by: "ordinal", of: "agent", only: "is_queued" },
    ended: { by: "ended_at", hasTies: true },
  },
  weigh: weigherOf(EVENT_BYTES, EVENT),
} satisfies Layout<SystemEvent>;

export const DELIVERIES = {
  table: "deliveries",
  key: "delivery_id",
  columns: {
    delivery_id: ["text", ({ delivery }) => delivery.deliveryId],
    place: ["integer", ({ place }) => place, "fixed"],
    refused: ["boolean", isOfStranger, "fixed"],
    ended_order: ["integer", ({ endedOrder }) => endedOrder],
  },
  orders: { all: { by: "place" }, ended: { by: "ended_order", of: "refused" } },
} satisfies Layout<DeliveryRecord>;

/** The shelf of a delivery counts the bytes of its content. */
export const CONTENTS = {
  table: "contents",
  key: "place",
  columns: { place: ["integer", ({ place }) => place] },
} satisfies Layout<ContentRecord>;

const weighNotification = weigherOf(NOTIFICATION_BYTES, NOTIFICATION);

export const NOTIFICATIONS = {
  table: "notifications",
  key: "id",
  columns: {
    id: ["text", ({ notification }) => notification.notificationId],
    place: ["integer", ({ place }) => place, "fixed"],
    endpoint: ["text", ({ notification }) => notification.endpoint, "fixed"],
    ended_order: ["integer", ({ endedOrder }) => endedOrder],
  },
  orders: { all: { by: "place" }, ended: { by: "ended_order", of: "endpoint" } },
  weigh: ({ notification }) => weighNotification(notification),
} satisfies Layout<NotificationRecord>;

export const KEYS = {
  table: "idempotency_keys",
  key: "key",
  columns: { key: ["text", ({ key }) => key], expires_at: ["integer", ({ expiresAt }) => expiresAt] },
  orders: { byEnd: { by: "expires_at", hasTies: true } },
  weigh: weigherOf(KEY_BYTES, KEY),
} satisfies Layout<KeyRecord>;

export const SUMMARIES = {
  table: "summaries",
  key: "session",
  columns: { session: ["integer", ({ ordinal }) => ordinal] },
  weigh: ({ summary, except }) => SUMMARY_BYTES + textBytes(summary.text) + except.length * 8,
} satisfies Layout<SummaryRecord>;

type Counter = Omit<UsageCount, keyof UsageCounts>;

let last = { hour: Number.NaN, agent: "", model: "", surface: "", caller: "", key: "" };
/** The maximum length of the names in a key, because a PostgreSQL index does not accept long texts. */
export const LONGEST_NAMES = 250;

/** The key of a counter starts with its hour. The last key is cached, because consecutive calls usually have the same counter. */
export function counterOf({ hour, agent, model, surface, caller }: Counter): string {
  const isLast = last.hour === hour && last.agent === agent && last.model === model;
  if (isLast && last.surface === surface && last.caller === caller) return last.key;
  const names = JSON.stringify([agent, model, surface, caller]);
  const key = `${hourOf(hour)} ${names.length <= LONGEST_NAMES ? names : hashOf(names)}`;
  last = { hour, agent, model, surface, caller, key };
  return key;
}

/** The beginning of the keys of an hour's counters. */
export function hourOf(hour: number): string {
  return String(Math.max(Math.ceil(hour), 0)).padStart(13, "0");
}

function hashOf(text: string): string {
  return createHash("sha256").update(text).digest("base64url");
}

export const USAGE = {
  table: "usage",
  key: "counter",
  isMutable: true,
  columns: { counter: ["text", counterOf] },
  orders: { all: { by: "counter" } },
  weigh: () => COUNT_BYTES,
} satisfies Layout<UsageCount>;

// Tables that are completely in memory: unfinished work, and tables with few records.

/** True if only the lease was extended. This is not saved, so that leases can be extended while the disk is full. */
function isOnlyExtended<W extends { readonly lease: Lease | undefined }>(work: W, after: W): boolean {
  const names = Object.keys(after) as (keyof W)[];
  return (
    work.lease?.node === after.lease?.node && names.every((name) => name === "lease" || work[name] === after[name])
  );
}

export const OPEN_TURNS = {
  table: "open_turns",
  key: "id",
  isLive: true,
  columns: {
    id: ["text", ({ turn }) => turn.turnId],
    session: ["integer", ({ ordinal }) => ordinal, "fixed"],
    agent: ["text", ({ turn }) => turn.agent, "fixed"],
    place: ["integer", ({ place }) => place],
    waited: ["boolean", ({ open }) => laneOf(open) === "waited"],
    other: ["boolean", ({ open }) => laneOf(open) === "other"],
    compact: ["boolean", ({ open }) => laneOf(open) === "compact"],
    ready: ["integer", ({ open }) => open.readyOrder],
    due: ["number", ({ open }) => open.dueAt],
    lease_ends: ["number", ({ open }) => open.lease?.endsAt],
    cancelled: ["boolean", ({ open }) => open.isCancelled],
    held_by: ["text", ({ open }) => open.heldBy],
    held: ["integer", ({ open, place }) => (isHeld(open) ? place : undefined)],
  },
  orders: {
    all: { by: "id", isRare: true },
    ofAgent: { by: "id", of: "agent", isRare: true },
    leases: { by: "lease_ends", hasTies: true, isRare: true },
    cancelled: { by: "id", only: "cancelled", isRare: true },
    queue: { by: "place", of: "session" },
    waited: { by: "ready", of: "agent", only: "waited" },
    other: { by: "ready", of: "agent", only: "other" },
    compact: { by: "ready", of: "agent", only: "compact" },
    due: { by: "due", hasTies: true },
    held: { by: "held", of: "held_by" },
  },
  weigh: ({ turn, open, joined }) =>
    weighTurn(turn) +
    OPEN_BYTES +
    (open.group ? bytesOfGroup(open.group) : 0) +
    (joined ? joined.length * JOINED_BYTES : 0),
  isSaved: (before, after) => before.turn !== after.turn || !isOnlyExtended(before.open, after.open),
} satisfies Layout<OpenTurnRecord>;

const { waited, other, compact } = OPEN_TURNS.orders;
/** The order of the turns of each lane that can be claimed. */
export const LANE_ORDERS = { waited, other, compact };

export function lateAttemptKey(turnId: string, fence: number): string {
  return `${turnId} ${fence}`;
}

export const LATE_ATTEMPTS = {
  table: "late_attempts",
  key: "id",
  isLive: true,
  columns: {
    id: ["text", ({ turnId, fence }) => lateAttemptKey(turnId, fence)],
    ends_at: ["number", ({ endsAt }) => endsAt],
  },
  orders: { byEnd: { by: "ends_at", hasTies: true, isRare: true } },
} satisfies Layout<LateAttempt>;

export const AGENTS = {
  table: "agents",
  key: "id",
  isLive: true,
  columns: { id: ["text", ({ agent }) => agent] },
} satisfies Layout<AgentRecord>;

export const COUNTS = {
  table: "agent_counts",
  key: "id",
  isLive: true,
  isMutable: true,
  columns: { id: ["text", ({ agent }) => agent] },
  orders: { all: { by: "id", isRare: true } },
} satisfies Layout<AgentCount>;

export const SHARES = {
  table: "shares",
  key: "id",
  isLive: true,
  isMutable: true,
  columns: { id: ["text", ({ owner }) => owner] },
  orders: { all: { by: "id", isRare: true } },
} satisfies Layout<ShareRecord>;

export const BEATS = {
  table: "beats",
  key: "id",
  isLive: true,
  columns: { id: ["text", ({ agent }) => agent] },
} satisfies Layout<BeatRecord>;

export const BUDGETS = {
  table: "budgets",
  key: "id",
  isLive: true,
  columns: { id: ["text", ({ name }) => name] },
  orders: { all: { by: "id", isRare: true } },
} satisfies Layout<BudgetRecord>;

export const SCHEDULES = {
  table: "schedules",
  key: "id",
  isLive: true,
  columns: { id: ["text", ({ name }) => name] },
  orders: { all: { by: "id", isRare: true } },
} satisfies Layout<ScheduleRecord>;

export const OUTGOING = {
  table: "outgoing",
  key: "id",
  isLive: true,
  columns: {
    id: ["text", ({ message }) => message.id],
    session: ["integer", ({ ordinal }) => ordinal, "fixed"],
    endpoint: ["text", ({ message }) => message.endpoint, "fixed"],
    place: ["integer", ({ place }) => place],
    ready: ["boolean", ({ lease, dueAt }) => !lease && dueAt === undefined],
    due: ["number", ({ dueAt }) => dueAt],
    lease_ends: ["number", ({ lease }) => lease?.endsAt],
  },
  orders: {
    leases: { by: "lease_ends", hasTies: true, isRare: true },
    ofSession: { by: "place", of: "session" },
    ready: { by: "place", of: "endpoint", only: "ready" },
    due: { by: "due", hasTies: true },
  },
  weigh: () => MESSAGE_BYTES,
  isSaved: (before, after) => !isOnlyExtended(before, after),
} satisfies Layout<OutgoingRecord>;

export const API_KEYS = {
  table: "api_keys",
  key: "id",
  isLive: true,
  columns: { id: ["text", ({ key }) => key.keyId], place: ["integer", ({ place }) => place, "fixed"] },
  orders: { all: { by: "place", isRare: true } },
} satisfies Layout<ApiKeyRecord>;

/** Deleted sessions with journal entries that are not erased yet. */
export const ERASURES = {
  table: "erasures",
  key: "id",
  isLive: true,
  columns: { id: ["integer", ({ ordinal }) => ordinal] },
  orders: { all: { by: "id" } },
} satisfies Layout<{ ordinal: number }>;

/** The tables that may become large. */
export const LARGE_LAYOUTS = [
  SESSIONS,
  TURNS,
  EVENTS,
  DELIVERIES,
  CONTENTS,
  NOTIFICATIONS,
  KEYS,
  SUMMARIES,
  USAGE,
] satisfies Layout<never>[];
/** The tables with few records. */
export const LIVE_LAYOUTS = [
  OPEN_TURNS,
  LATE_ATTEMPTS,
  AGENTS,
  COUNTS,
  SHARES,
  BEATS,
  BUDGETS,
  SCHEDULES,
  OUTGOING,
  API_KEYS,
  ERASURES,
] satisfies Layout<never>[];
