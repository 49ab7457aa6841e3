import type { Entry, Session, StoreLimits, Turn, TurnOrder } from "#store/store.ts";

/** A session as the memory engine holds it: flat, as there may be a million. Its journal is in the log arena. */
export type SessionRow = Omit<Session, "usage"> & {
  input: number;
  output: number;
  readonly ordinal: number;
  gone: boolean;
  /** The newest chunk of its log. */
  chunk: number;
  /** Unfinished turns in order; the first may be running. */
  queue: readonly TurnRow[];
};

/** An unfinished turn. One that has ended lives in its session's log alone. */
export type TurnRow = Turn & {
  session: SessionRow;
  text: string;
  outside: boolean;
  waited: boolean;
  replyMessageId: string;
  /** Monotonic time at which its claim ends. */
  leaseEnds: number;
  node: string;
  /** To end as cancelled, whenever its runner gives it back. */
  cancelled: boolean;
};

/** An entry before it has its place: everything but `seq`. */
export type NewEntry = Entry extends infer E ? (E extends Entry ? Omit<E, "seq"> : never) : never;

export const newTurnRow = (session: SessionRow, order: TurnOrder, seq: number): TurnRow => ({
  turnId: order.turnId,
  sessionId: session.sessionId,
  agent: session.agent,
  surface: order.surface,
  caller: order.caller,
  status: "queued",
  attempt: 0,
  createdAt: order.now,
  startedAt: undefined,
  endedAt: undefined,
  model: order.model,
  skillIds: order.skillIds,
  messageId: order.messageId,
  seq,
  reply: undefined,
  error: undefined,
  usage: undefined,
  deliveryId: order.delivery?.deliveryId,
  session,
  text: order.text,
  outside: order.outside,
  waited: order.waited,
  replyMessageId: "",
  leaseEnds: 0,
  node: "",
  cancelled: false,
});

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
  usage: { input: row.input, output: row.output },
});

/** The limit that a new turn would pass, in words; undefined when there is none. */
export const limitPassed = (
  session: SessionRow | undefined,
  queued: number,
  bytes: number,
  limits: StoreLimits,
): { name: "session-busy" | "session-full" | "gateway-busy" | "store-full"; detail: string } | undefined => {
  if (session && session.turnsQueued >= limits.turnsPerSession) {
    return {
      name: "session-busy",
      detail: `${session.turnsQueued} turns wait in the session, limits.turnsPerSession.`,
    };
  }
  if (session && session.messageCount >= limits.messagesPerSession) {
    return {
      name: "session-full",
      detail: `The session holds ${session.messageCount} messages, limits.messagesPerSession.`,
    };
  }
  if (queued >= limits.turns) return { name: "gateway-busy", detail: `${queued} turns wait, limits.turns.` };
  if (bytes >= limits.storeBytes)
    return { name: "store-full", detail: `The store holds ${bytes} bytes, limits.storeBytes.` };
  return undefined;
};
