import { NOWHERE } from "#kit/tables.ts";
import type { AgentCounts, Entry, StoreLimits, Turn, TurnOrder } from "#store/store.ts";
import { NO_SLOT } from "./record-segments.ts";
import type { SessionRow } from "./session-row.ts";

export type QueueRow = TurnRow | CompactionRow;

/** A compaction's place in its session's queue. */
export type CompactionRow = {
  readonly status: "compaction";
  readonly compactionId: string;
  readonly session: SessionRow;
  readonly node: string;
  leaseEnds: number;
};

/** The system events that a turn works on. */
export type TakenEvents = { ids: readonly string[]; slots: readonly number[]; maxAttempts: number; streamKeep: number };

/** An unfinished turn. One that has ended lives in its session's log alone. */
export type TurnRow = Turn & {
  session: SessionRow;
  /** Its number in the log of turns. */
  number: number;
  /** Where the flight recorder has its delivery. */
  deliverySlot: number;
  /** Its place among those that run. */
  at: number;
  text: string;
  outside: boolean;
  /** What came beside the text, as JSON. */
  context: string | undefined;
  waited: boolean;
  countedModel: string;
  events: TakenEvents | undefined;
  announce: TurnOrder["announce"];
  /** The counters of its agent. */
  counts: AgentCounts;
  replyMessageId: string;
  spentMs: number;
  /** Monotonic time at which its claim ends. */
  leaseEnds: number;
  node: string;
  /** To end as cancelled, whenever its runner gives it back. */
  cancelled: boolean;
};

/** Session by session, and in each in the order of its queue. */
export const bySession = (a: TurnRow, b: TurnRow): number => a.session.ordinal - b.session.ordinal || a.seq - b.seq;

/** An entry without its place in the journal. */
export type NewEntry = Entry extends infer E ? (E extends Entry ? Omit<E, "seq"> : never) : never;

/** The `seq` of an entry that has no place yet. */
export const NO_SEQ = 0;

export const newTurnRow = (
  session: SessionRow,
  order: TurnOrder,
  { seq, number, events, counts }: Pick<TurnRow, "seq" | "number" | "events" | "counts">,
): TurnRow => ({
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
  deliverySlot: NO_SLOT,
  at: NOWHERE,
  number,
  session,
  text: order.text,
  outside: order.outside,
  context: order.context,
  waited: order.waited,
  countedModel: order.countedModel,
  events,
  announce: order.announce,
  counts,
  replyMessageId: "",
  spentMs: 0,
  leaseEnds: 0,
  node: "",
  cancelled: false,
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
  if (session && session.messageCount - session.compactedCount >= limits.messagesPerSession) {
    return {
      name: "session-full",
      detail: `The session holds ${session.messageCount - session.compactedCount} messages, limits.messagesPerSession.`,
    };
  }
  if (queued >= limits.turns) return { name: "gateway-busy", detail: `${queued} turns wait, limits.turns.` };
  if (bytes >= limits.storeBytes)
    return { name: "store-full", detail: `The store holds ${bytes} bytes, limits.storeBytes.` };
  return undefined;
};
