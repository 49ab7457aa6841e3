import { GatewayError } from "#kit/errors.ts";
import type { MoreUsage, Session, StoreLimits, Turn, TurnOrder } from "#store/store.ts";
import { sessionOf as viewOf } from "#store/views.ts";
import type { Totals } from "../messages.ts";
import type { TakenEvents } from "./events.ts";

/** A session as the worker holds it: one with a queue always, others while there is room. */
export type SessionRow = Omit<Session, "turnsQueued" | "usage"> & {
  input: number;
  output: number;
  more: MoreUsage | undefined;
  /** Messages that its summary stands for. */
  compactedCount: number;
  /** The minute in which the head of its journal may be cut; undefined when nothing of it may go. */
  head: number | undefined;
  queue: QueueRow[];
  /** Its row is to be written with the batch. */
  isDirty: boolean;
  /** It has a row; and the minute and head that this says. */
  isStored: boolean;
  storedUse: number;
  storedHead: number | undefined;
};

export type QueueRow = TurnRow | CompactionRow;

/** A compaction's place in its session's queue. */
export type CompactionRow = {
  readonly status: "compaction";
  readonly compactionId: string;
  readonly session: SessionRow;
  readonly node: string;
  leaseEnds: number;
};

/** A turn that has not ended. */
export type TurnRow = Turn & {
  readonly place: number;
  readonly session: SessionRow;
  readonly waited: boolean;
  readonly countedModel: string;
  readonly announce: TurnOrder["announce"];
  events: TakenEvents | undefined;
  replyMessageId: string;
  spentMs: number;
  /** Monotonic time at which its claim ends, and before which it is not claimed. */
  leaseEnds: number;
  due: number;
  node: string;
  /** To end as cancelled, whenever its runner gives it back. */
  cancelled: boolean;
  /** Its place among those that run. */
  at: number;
  /** Its row is to be written with the batch; it has one; it has ended. */
  isDirty: boolean;
  isStored: boolean;
  isGone: boolean;
};

/** The order in which turns end that end with one call: session by session, and in each as they were queued. */
export const inOrder = (rows: TurnRow[]): TurnRow[] =>
  rows.sort((a, b) => a.session.ordinal - b.session.ordinal || a.seq - b.seq);

export const turnsQueuedOf = ({ queue }: SessionRow): number => {
  let count = 0;
  for (const { status } of queue) if (status === "queued") count++;
  return count;
};

export const sessionOf = (row: SessionRow): Session => viewOf(row, turnsQueuedOf(row));

const BUSY_HINT_MS = 1_000;

/** Refuses a new turn that would pass a limit. */
export const checkLimits = (session: SessionRow | undefined, counts: Totals, limits: StoreLimits): void => {
  if (session) {
    const waiting = turnsQueuedOf(session);
    if (waiting >= limits.turnsPerSession) {
      throw busy("session-busy", `${waiting} turns wait in the session, limits.turnsPerSession.`);
    }
    const messages = session.messageCount - session.compactedCount;
    if (messages >= limits.messagesPerSession) {
      throw new GatewayError("session-full", `The session holds ${messages} messages, limits.messagesPerSession.`);
    }
  }
  const { turnsQueued } = counts;
  if (turnsQueued >= limits.turns) throw busy("gateway-busy", `${turnsQueued} turns wait, limits.turns.`);
  checkBytes(bytesOfLimit(counts), limits.storeBytes);
};

/** What counts for `limits.storeBytes`. */
export const bytesOfLimit = ({ bytes, deliveryExcess }: Totals): number => bytes + deliveryExcess;

/** Refuses what would be kept although the store is full. */
export const checkBytes = (bytes: number, limit: number): void => {
  if (bytes >= limit) throw busy("store-full", `The store holds ${bytes} bytes, limits.storeBytes.`);
};

export const busy = (name: "session-busy" | "gateway-busy" | "store-full", detail: string): GatewayError =>
  new GatewayError(name, detail, { retryAfterMs: BUSY_HINT_MS });
