/**
 * The port between the rules and an engine: the questions that rules ask, and the guarantees of an engine.
 *
 * - A rule is a synchronous function `(records, order) => answer`. It runs inside one transaction, alone.
 * - Records are immutable. A rule never changes one that it was given: it puts another in its place. So an engine sees each change by its
 *   `put` and its `delete`, may hand its own objects out, and can compare old and new records.
 * - Every call sees each write that came before it in the same transaction.
 * - A rule refuses (it throws a GatewayError) before its first write, so that an engine has nothing to undo.
 * - A rule touches only records that its order names (a session, a turn, an agent, a key), those that these name, and the answers of the
 *   ordered scans below. An engine that loads before it runs can derive these from the order.
 * - All scans answer an array of the records at that moment, in the order that they state. A rule may write while it walks through one.
 * - Numbers that `next` gives grow with each call and are never given twice.
 * - `moment` is the engine's clock: `time` for leases and delays, which no jump of the wall clock touches, and `now`, the wall clock.
 */

import { number, optional, short, type TypeOf, text } from "#store/fields.ts";
import type {
  ApiKey,
  CompactionTask,
  Delivery,
  DeliveryContent,
  DeliveryError,
  Lane,
  NotificationRecord,
  Outgoing,
  Session,
  Store,
  StorePolicy,
  Summary,
  Surface,
  SystemEvent,
  Turn,
  TurnOrder,
  TurnTask,
  UsageCount,
  UsageCounts,
  WorkIds,
} from "#store/store.ts";
import type { BeatRecord } from "./beat-records.ts";
import type { BudgetRecord, Reservation } from "./budget-records.ts";
import type { AgentRecord, CountChange, Counts } from "./counts.ts";
import type { GroupRecord } from "./group-records.ts";
import type { News } from "./news.ts";
import type { ScheduleRecords } from "./schedule-records.ts";
import type { ShareRecords } from "./share-records.ts";
import type { GatewayStream, Journal } from "./streams.ts";

export type * from "./beat-records.ts";
export type * from "./counts.ts";

/** The right of a node to work on something until `endsAt`, a monotonic time. */
export type Lease = { readonly node: string; readonly endsAt: number };

export type SessionRecord = {
  readonly session: Session;
  /** Messages that its summary stands for. */
  readonly compactedCount: number;
  /** The bound from which on the head of its journal may be erased. Undefined: not before its next compaction. */
  readonly headDueAt: number | undefined;
};

/** Sessions that are idle since before these times are past their retention. */
export type SessionBounds = Pick<Parameters<Store["sweep"]>[0], "sessionsBefore" | "webhookSessionsBefore">;

/** A turn. `open` holds the fields that only an unfinished turn needs. */
export type TurnRecord = {
  readonly turn: Turn;
  /** The ordinal of its session. */
  readonly ordinal: number;
  /** Its place in its session's queue: smaller than that of all later ones. */
  readonly place: number;
  /** The `seq` of the entry that holds its reply, which a rule leaves out of `turn`; 0 where there is none. */
  readonly replySeq: number;
  readonly open: OpenTurn | undefined;
  /** The bytes that count for its caller's share. Heartbeats, compactions and records of earlier versions do not have them. */
  readonly bytes?: number | undefined;
  /** The newest deliveries that joined its group, which are erased with it; undefined if none has. */
  readonly joined?: readonly string[] | undefined;
};

export type OpenTurn = {
  readonly waited: boolean;
  readonly countedModel: string;
  readonly task: TurnTask | undefined;
  readonly announce: TurnOrder["announce"];
  readonly replyMessageId: string;
  readonly spentMs: number;
  /** To end as cancelled, whenever its runner gives it back. */
  readonly isCancelled: boolean;
  /** Its place among the turns that can be claimed; undefined for one that cannot. */
  readonly readyOrder: number | undefined;
  /** The monotonic time at which it can be claimed again, after it was given back with a delay. */
  readonly dueAt: number | undefined;
  readonly lease: Lease | undefined;
  /** The part of its budgets that is reserved for it while it runs; undefined where no budget applies. */
  readonly reservation?: Reservation | undefined;
  /** The bytes of the context of its message, which its session does not count; undefined for none, and where no budget applies. */
  readonly contextBytes?: number | undefined;
  /** The budget that it waits for, until room is free or `dueAt`. Without `dueAt`, it waited for this budget before it became ready. */
  readonly heldBy?: string | undefined;
  /** The open group of its webhooks. Until it closes at `dueAt`, the turn has no entries, its `seq` is 0 and its place is behind all others. */
  readonly group?: GroupRecord | undefined;
  /** The time for which its group was open; undefined if it had none. */
  readonly groupedMs?: number | undefined;
};

export function isHeld({ heldBy, dueAt }: OpenTurn): boolean {
  return heldBy !== undefined && dueAt !== undefined;
}

/** A turn that has not ended. */
export type OpenTurnRecord = TurnRecord & { readonly open: OpenTurn };

export function isOpen(record: TurnRecord): record is OpenTurnRecord {
  return record.open !== undefined;
}

export type CompactionRecord = OpenTurnRecord & { readonly open: { readonly task: CompactionTask } };

export function isCompaction(record: TurnRecord): record is CompactionRecord {
  return record.open?.task?.kind === "compact";
}

export type SummaryRecord = {
  readonly ordinal: number;
  readonly summary: Summary;
  /** It stands for all messages up to `through`, except the ones whose `seq` is in `except`. */
  readonly through: number;
  readonly except: readonly number[];
};

/** It can be claimed where it has neither a lease nor a time at which it is due. */
export type OutgoingRecord = {
  readonly message: Outgoing;
  /** The ordinal of the session with which it is deleted; 0 for none. */
  readonly ordinal: number;
  /** The oldest goes first. */
  readonly place: number;
  readonly dueAt: number | undefined;
  readonly fence: number;
  readonly lease: Lease | undefined;
};

export type DeliveryRecord = Readonly<WorkIds> & {
  readonly delivery: Omit<Delivery, keyof DeliveryContent>;
  readonly contentBytes: number;
  readonly place: number;
  /** Its place among the deliveries that the recorder may erase; undefined while its work continues. */
  readonly endedOrder: number | undefined;
  /** True for a refused request of an authenticated caller. Records of earlier versions do not have it. */
  readonly isOfCaller?: true | undefined;
  /** Why it was refused. Records of earlier versions do not have it. */
  readonly refusal?: DeliveryError | undefined;
};

/** The content of a delivery, which has the same place. Lists do not read it. */
export type ContentRecord = { readonly place: number } & Readonly<DeliveryContent>;

/** True for a refused request of a stranger. */
export function isOfStranger({ delivery, isOfCaller }: DeliveryRecord): boolean {
  return delivery.answer === "refused" && !isOfCaller;
}

export const KEY = {
  key: text,
  hash: text,
  expiresAt: number,
  turnId: optional(short),
  eventId: optional(short),
  /** The delivery of a request that joined the open group of its turn. */
  deliveryId: optional(short),
};
export type KeyRecord = TypeOf<typeof KEY>;

/** An attempt that lost its claim while it ran, and whose usage is still to come. */
export type LateAttempt = {
  readonly turnId: string;
  readonly fence: number;
  readonly node: string;
  readonly agent: string;
  readonly surface: Surface;
  readonly caller: string;
  readonly endsAt: number;
  /** For an estimate of its usage. Records of earlier versions do not have it. */
  readonly promptBytes?: number | undefined;
};

/** `place`: the oldest key has the smallest place. */
export type ApiKeyRecord = { readonly key: ApiKey; readonly place: number };

export type Totals = ReturnType<Store["stats"]>;

/** The memory of the rules from one order to the next. It belongs to the process: an engine need not keep it. */
export type Bookmarks = {
  /** The kind of turn that is claimed next: one with a waiting caller, or another. */
  readonly isWaitedNext: boolean;
  /** The last session that a sweep has checked; undefined if the next sweep starts with the first one. */
  readonly sweptTo: SessionRecord | undefined;
  /** The bytes that the recorder may hold, by the last order. */
  readonly recorderBytes: number;
  readonly policy: StorePolicy;
};

/** Records by their keys. */
interface StoredRecords<R, K = string> {
  find(key: K): R | undefined;
  put(record: R): void;
  delete(record: R): void;
}

/** Records that may have the lease of a node, and a `dueAt` after which they can be claimed again. */
export interface Leased<R> {
  /** The records whose lease ends at `time` or earlier, in any order. */
  leaseEnded(time: number): R[];
  /** At most `limit` records whose `dueAt` is `time` or earlier, in the order of `dueAt`. */
  dueBy(time: number, limit: number): R[];
  /** The smallest `dueAt`. */
  nextDueAt(): number | undefined;
}

export interface Records {
  readonly moment: { readonly now: number; readonly time: number };
  /** The bytes of all records except the recorder's, and the sums of the counts of all agents. */
  readonly totals: { readonly bytes: number; readonly open: Readonly<Counts> };
  readonly bookmarks: Bookmarks;
  setBookmarks(change: Partial<Bookmarks>): void;
  next(series: "session" | "event" | "place" | "order"): number;
  notify(news: News): void;

  readonly sessions: StoredRecords<SessionRecord> & {
    /** The session of that ordinal, and no later one of the same id. */
    at(ordinal: number, sessionId: string): SessionRecord | undefined;
    /** Sessions with a smaller ordinal, newest first; of one agent or of all. */
    before(ordinal: number, limit: number, agent?: string): SessionRecord[];
    /**
     * The sessions after `last`, in the order of their ordinals or of their idle times. An engine may leave out sessions within their retention. It
     * returns an empty list only if there are no more.
     */
    after(last: SessionRecord | undefined, limit: number, bounds: SessionBounds): SessionRecord[];
  };
  /** The journal of a session, by its ordinal. */
  journal(ordinal: number): Journal;
  /** Deleted sessions with remaining entries in their journals. */
  readonly erasures: {
    /** The smallest ordinal. */
    first(): number | undefined;
    add(ordinal: number): void;
    delete(ordinal: number): void;
  };
  readonly summaries: {
    find(ordinal: number): SummaryRecord | undefined;
    put(record: SummaryRecord): void;
    delete(ordinal: number): void;
  };

  /** The session of a turn is put before the turn is. An engine may give a turn that has ended with its reply. */
  readonly turns: StoredRecords<TurnRecord> &
    Leased<OpenTurnRecord> & {
      /** Unfinished turns of a session, by their places; those with open groups come last. */
      queue(ordinal: number): readonly OpenTurnRecord[];
      /** The first turn of the queue. A turn with an open group is none, as it blocks no other. */
      firstInQueue(ordinal: number): OpenTurnRecord | undefined;
      /** The turns of a session with open groups. */
      grouped(ordinal: number): readonly OpenTurnRecord[];
      /** Turns that have not ended, in any order; of one agent or of all. */
      open(agent?: string): OpenTurnRecord[];
      /** Turns with a smaller id, the greatest first. */
      before(turnId: string | undefined, limit: number): TurnRecord[];
      /** Agents that have turns with a `readyOrder`. */
      readyAgents(): string[];
      /** The turn of an agent and a lane with the smallest `readyOrder`. */
      firstReady(agent: string, lane: Lane): OpenTurnRecord | undefined;
      /** The budgets that hold turns. */
      holdingBudgets(): string[];
      /** The turns that a budget holds, in the order of their places. */
      held(budget: string, limit: number): OpenTurnRecord[];
    };
  readonly lateAttempts: {
    find(turnId: string, fence: number): LateAttempt | undefined;
    put(attempt: LateAttempt): void;
    delete(attempt: LateAttempt): void;
    /** Attempts that end at `time` or earlier. */
    endedBy(time: number): LateAttempt[];
  };

  readonly events: StoredRecords<SystemEvent> & {
    /** The queued events of an agent with `after` < ordinal <= `through`, in the order of their ordinals. */
    queued(agent: string, range: { after: number; through: number }, limit: number): SystemEvent[];
    /** Events with a smaller ordinal, newest first. */
    before(ordinal: number, limit: number): SystemEvent[];
    /** Events that ended before `time`, in the order of their ends. */
    endedBefore(time: number, limit: number): SystemEvent[];
  };
  readonly beats: Omit<StoredRecords<BeatRecord>, "delete">;
  readonly outgoing: StoredRecords<OutgoingRecord> &
    Leased<OutgoingRecord> & {
      ofSession(ordinal: number): OutgoingRecord[];
      /** The endpoints with messages that can be claimed. */
      readyEndpoints(): string[];
      /** The message of an endpoint with the smallest place among all that can be claimed. */
      firstReady(endpoint: string): OutgoingRecord | undefined;
    };

  readonly notifications: Omit<StoredRecords<NotificationRecord>, "delete"> & {
    /** Notifications with a smaller place, newest first. */
    before(place: number, limit: number): NotificationRecord[];
    /** The number of notifications of an endpoint that have not ended. */
    waiting(endpoint: string): number;
    /**
     * Erases the notifications that ended first, until at most `most` of an endpoint are stored that have ended, some at a time; of one endpoint or of each. Returns
     * true if there are more.
     */
    eraseEnded(most: number, endpoint?: string): boolean;
  };

  readonly deliveries: StoredRecords<DeliveryRecord> & {
    /** The number and the bytes of the kept deliveries: of refused strangers, or of all others. */
    shelf(ofStrangers: boolean): { readonly size: number; readonly bytes: number };
    /** The delivery with the smallest `endedOrder` on that shelf. */
    firstEnded(ofStrangers: boolean): DeliveryRecord | undefined;
    /** Deliveries with a smaller place, newest first. */
    before(place: number, limit: number): DeliveryRecord[];
  };
  readonly contents: {
    find(place: number): ContentRecord | undefined;
    put(content: ContentRecord): void;
    delete(place: number): void;
  };
  readonly keys: StoredRecords<KeyRecord> & {
    /** Keys that end at `time` or earlier; it may leave out some that were put after one that ends later. */
    endedBy(time: number, limit: number): KeyRecord[];
  };

  readonly agents: {
    find(agent: string): AgentRecord | undefined;
    put(record: AgentRecord): void;
    count(agent: string, change: CountChange): void;
  };
  readonly shares: ShareRecords;
  readonly usage: {
    /** Adds to the counters of that hour, agent, model, surface and caller. */
    add(of: Omit<UsageCount, keyof UsageCounts>, change: Partial<UsageCounts>): void;
    /** The counters after a counter, or from an hour on, in the order of their hours. An engine may return more than `limit` to a rule that only reads. */
    after(place: UsageCount | number, limit: number): UsageCount[];
    delete(counter: UsageCount): void;
  };
  readonly budgets: StoredRecords<BudgetRecord> & {
    /** All records, in the order of their names. */
    all(): BudgetRecord[];
  };
  readonly schedules: ScheduleRecords;
  readonly gateway: GatewayStream;
  readonly apiKeys: StoredRecords<ApiKeyRecord> & {
    /** All keys, in the order of their places. */
    all(): ApiKeyRecord[];
  };
}

/** Work that an engine runs a piece of at a time, with other orders between the pieces. It only reads. */
export type Pieces<T> = Generator<void, T, void>;

export function isPieces(answer: unknown): answer is Pieces<unknown> {
  return typeof answer === "object" && answer !== null && Symbol.iterator in answer && "next" in answer;
}

/** The rule behind a method of the store: it has the same arguments and answer. */
export type Rule<Name extends keyof Store> = Store[Name] extends (...args: infer Args) => infer Answer
  ? (records: Records, ...args: Args) => Awaited<Answer>
  : never;
/** The same of a method that may have to look at a great many records. */
export type RuleInPieces<Name extends keyof Store> = (
  ...args: Parameters<Rule<Name>>
) => Pieces<ReturnType<Rule<Name>>>;
