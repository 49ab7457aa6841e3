import type { Entry, Session, StoreLimits, Turn } from "#store/store.ts";

/** A session as the memory engine holds it. */
export type SessionRow = Session & {
  readonly ordinal: number;
  gone: boolean;
  entries: Entry[];
  /** Unfinished turns in order; the first may be running. */
  queue: TurnRow[];
};

/** A turn as the memory engine holds it: its own fields, and what the engine alone needs. */
export type TurnRow = Turn & {
  session: SessionRow;
  text: string;
  outside: boolean;
  waited: boolean;
  replyMessageId: string;
  replySeq: number;
  /** Monotonic time at which its claim ends. */
  leaseEnds: number;
  node: string;
  cancelled: boolean;
  /** Released with a delay, and not due yet. */
  delayed: boolean;
};

/** The turn without what is the engine's own. */
export const turnOf = (row: TurnRow): Turn => ({
  turnId: row.turnId,
  sessionId: row.sessionId,
  agent: row.agent,
  surface: row.surface,
  caller: row.caller,
  status: row.status,
  attempt: row.attempt,
  createdAt: row.createdAt,
  startedAt: row.startedAt,
  endedAt: row.endedAt,
  model: row.model,
  skillIds: row.skillIds,
  messageId: row.messageId,
  seq: row.seq,
  reply: row.reply,
  error: row.error,
  usage: row.usage,
  deliveryId: row.deliveryId,
});

export const sessionOf = (row: SessionRow): Session => ({
  sessionId: row.sessionId,
  agent: row.agent,
  channel: row.channel,
  userId: row.userId,
  createdAt: row.createdAt,
  updatedAt: row.updatedAt,
  lastSeq: row.lastSeq,
  messageCount: row.messageCount,
  turnsQueued: row.turnsQueued,
  usage: { ...row.usage },
});

// What a record costs beside its text, as measured on the heap (see `npm run bench`, P10).
export const SESSION_BYTES = 450;
export const TURN_BYTES = 900;

/** The limit that a new turn would pass, or undefined. */
export const limitPassed = (
  session: SessionRow | undefined,
  queued: number,
  bytes: number,
  limits: StoreLimits,
): "session-busy" | "session-full" | "gateway-busy" | "store-full" | undefined => {
  if (session && session.turnsQueued >= limits.turnsPerSession) return "session-busy";
  if (session && session.messageCount >= limits.messagesPerSession) return "session-full";
  if (queued >= limits.turns) return "gateway-busy";
  if (bytes >= limits.storeBytes) return "store-full";
  return undefined;
};
