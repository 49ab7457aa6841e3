/** The records that the store keeps and the orders that it takes; `store.ts` says how they are used. */
import type { ErrorName } from "#kit/errors.ts";
import type { ToolCall } from "#kit/tool-calls.ts";
import type { Usage, UsageCounts } from "#kit/usages.ts";
import { characters, type Field, nested, number, optional, short, type TypeOf, text, typed } from "./fields.ts";
import type { TurnGroup } from "./groups.ts";
import { type Delivery, type RecorderLimits, type Surface, type SystemEvent, TURN_ANNOUNCEMENT } from "./inbound.ts";

export type { ToolCall } from "#kit/tool-calls.ts";
export type { MoreUsage, Usage, UsageCounts } from "#kit/usages.ts";
export type Role = "user" | "assistant" | "system" | "tool";
export type TurnStatus = "queued" | "running" | "completed" | "failed" | "cancelled";

/** The bytes of an announcement in its turn. */
const TURN_ANNOUNCEMENT_BYTES = 60;

/** One conversation of one agent. */
export const SESSION = {
  sessionId: characters,
  agent: short,
  channel: characters,
  userId: characters,
  createdAt: number,
  updatedAt: number,
  /** The `seq` of its newest journal entry. */
  lastSeq: number,
  /** The `seq` of the oldest entry that is kept: 1 until a sweep erases the head, one after `lastSeq` if it erased all. */
  firstSeq: number,
  /** Compacted and erased messages count, too. */
  messageCount: number,
  turnsQueued: number,
  usage: typed<Usage>(),
  /** Increases with each created session and is never used twice: it distinguishes a session from an earlier one of the same id. */
  ordinal: number,
  /** The UTF-8 bytes that a next turn reads: the messages that are not compacted, and the summary. */
  contextBytes: number,
  /** The beginning of its last message to the agent. Records of earlier versions do not have it. */
  preview: optional(text),
};
export type Session = TypeOf<typeof SESSION>;

/** A session and the number of its turns that run. */
export type ListedSession = Session & { turnsRunning: number };

/** The facts of a session for a watcher. */
export type SessionRef = Pick<Session, "sessionId" | "agent" | "ordinal" | "contextBytes">;

export type Message = {
  messageId: string;
  role: Role;
  text: string;
  turnId: string;
  /** The `seq` of the journal entry that holds its text. */
  seq: number;
  createdAt: number;
  /** Its text came from outside (a webhook's body, a system event) and is fenced when a prompt is built. */
  outside: boolean;
  /** The data for the agent next to the text, as JSON. */
  context: string | undefined;
  /** The tools that its agent called to write it; undefined where it called none. */
  toolCalls?: ToolCall[] | undefined;
  /** The summary stands for it: later turns do not read it. */
  compacted: boolean;
};

/** The size of the part of a session that its agent reads with the next turn. */
export type SessionSize = { messages: number; tokens: number };

export const TURN_ERROR = { name: typed<ErrorName>(), detail: optional(text) };
export type TurnError = TypeOf<typeof TURN_ERROR> & {
  /** The budget without room, for budget-exceeded. */
  budget?: { name: string; resetsAt: number } | undefined;
};

/** One run of an agent on a session. */
export const TURN = {
  turnId: short,
  sessionId: short,
  agent: short,
  surface: typed<Surface>(),
  /** The name of the token that started it. */
  caller: short,
  status: typed<TurnStatus>(),
  /** The number of times that it was claimed. */
  attempt: number,
  createdAt: number,
  /** The time when the latest attempt began. */
  startedAt: optional(number),
  endedAt: optional(number),
  /** The model that was asked for; after the turn has ended, the model that answered. */
  model: optional(short),
  skillIds: typed<readonly string[]>(),
  messageId: short,
  /** The `seq` of its `turn.queued` entry. */
  seq: number,
  reply: optional(short),
  error: optional(nested(TURN_ERROR) as unknown as Field<TurnError>),
  /** The usage of all its attempts so far; undefined before the first has ended. */
  usage: optional(typed<Usage>()),
  deliveryId: optional(short),
  /** The beginnings of its message and of its reply. Records of earlier versions do not have them. */
  preview: optional(text),
  replyPreview: optional(text),
  /** The announcement of its reply; undefined if it has none. */
  announcement: optional(nested(TURN_ANNOUNCEMENT, TURN_ANNOUNCEMENT_BYTES)),
};
export type Turn = TypeOf<typeof TURN>;

/** An entry of a session's journal: `seq` begins at 1 and grows by one. `turnId` is empty if no turn is meant. */
export type Entry = { seq: number; at: number; turnId: string } & (
  | {
      name: "message.created";
      messageId: string;
      role: Role;
      text: string;
      outside: boolean;
      context?: string | undefined;
    }
  | { name: "message.completed"; messageId: string; text: string; toolCalls?: ToolCall[] | undefined }
  | { name: "turn.queued" }
  | { name: "turn.started"; attempt: number }
  | ({ name: "turn.completed"; reply: string } & EntryOfEnd)
  | ({ name: "turn.failed"; error: TurnError } & EntryOfEnd)
  | ({ name: "turn.cancelled"; reply: string } & EntryOfEnd)
  | { name: "session.compacted"; before: SessionSize; after: SessionSize }
);

/** `model`: the one that answered, where it is not the one that was asked for. */
type EntryOfEnd = { usage: Usage; model?: string | undefined };

/** `share` is the part of `turns` and `storeBytes` that one caller may fill. Surfaces without callers have no share. */
export type StoreLimits = {
  turnsPerSession: number;
  turns: number;
  messagesPerSession: number;
  storeBytes: number;
  share: number;
};

/**
 * The part of the store of one caller: the bytes of its turns (with their messages and replies) and events, and the numbers of those that wait. Turns
 * and events of version 0.2.0 do not count.
 */
export type Share = { surface: Surface; caller: string; bytes: number; turns: number; events: number };

/** A request to start work. The caller makes the ids, so that an engine needs no randomness. */
export type TurnOrder = {
  now: number;
  turnId: string;
  messageId: string;
  session: { sessionId: string; agent: string; channel: string; userId: string };
  surface: Surface;
  caller: string;
  text: string;
  outside: boolean;
  /** The data next to the text, as JSON. */
  context: string | undefined;
  model: string | undefined;
  /** The model that its message and its end are counted under: its own, the agent's, or the backend's kind. */
  countedModel: string;
  skillIds: readonly string[];
  /** Somebody waits for the reply: it goes in the lane that `claimTurns` takes by turns with the other. */
  waited: boolean;
  idempotency: { key: string; hash: string; expiresAt: number } | undefined;
  delivery: Delivery | undefined;
  limits: StoreLimits;
  recorder: RecorderLimits;
  /**
   * The number of announcements and agents in the chain that started it, and the channel that gets its reply when it completes.
   * Undefined for a direct message whose reply goes to no channel.
   */
  announce: AnnounceOrder | undefined;
  /** Merges it with other webhooks that have the same key. Absent for all other turns. */
  group?: TurnGroup | undefined;
  /** Claim it in the same transaction, when nothing of its session is before it. */
  claim: ClaimRequest | undefined;
};

/** `to` and `thread` are the address in the channel, if the turn's webhook has one. */
export type AnnounceOrder = {
  channel: string | undefined;
  hops: number;
  to?: string | undefined;
  thread?: string | undefined;
};

/**
 * The task of a turn that is not an answer. A beat's turn takes its system events until it ends; an event is dead after `maxAttempts` failed
 * turns. A turn that compacts its session exists only while it is open, and has no message and no entries.
 */
export type TurnTask = BeatTask | CompactionTask;
export type BeatTask = { kind: "beat"; ids: readonly string[]; maxAttempts: number; streamKeep: number };
/** Keeps the last `keep` messages, but no more than have `keepTokens`. */
export type CompactionTask = { kind: "compact"; keep: number; keepTokens: number | undefined };

/** The lanes of turns that can be claimed: one of its own for compactions, whose whole session waits. */
export type Lane = "waited" | "other" | "compact";

/** `joinedBy`: the delivery of a request that joined an open group, also if the request is repeated. */
export type TurnStart = {
  turn: Turn;
  replayed: boolean;
  claimed: ClaimedTurn | undefined;
  joinedBy?: string | undefined;
};

/** A request for the next turn of an agent's beat. */
export type BeatOrder = {
  turn: Omit<TurnOrder, "text" | "outside" | "context" | "announce" | "delivery" | "idempotency">;
  /** The most events of a turn, the most bytes of their texts and metadata, and the failed turns after which an event is dead. */
  batch: { limit: number; bytes: number; maxAttempts: number };
  /** The time until the next beat; undefined if none is planned. */
  intervalMs: number | undefined;
  /** The time until the next beat if `intervalMs` is undefined and events were returned. */
  returnedDelayMs: number;
  /** The number of waiting events. With an interval, more than a batch of them make the next beat due immediately, unless events were returned. */
  waitingEvents: number;
  streamKeep: number;
};

/** `dead`: the dead events of the beat's previous turn. `ms`: the duration of the whole beat. */
export type BeatStep =
  | { outcome: "not-due" }
  | { outcome: "started"; started: TurnStart; dead: readonly SystemEvent[] }
  | { outcome: "ended"; events: number; turns: number; returned: number; ms: number; dead: readonly SystemEvent[] };

export type ClaimRequest = { now: number; node: string; leaseMs: number; replyMessageId: string };

/** The right to run a turn until its lease ends. `fence` grows with each claim of the turn. */
export type Claim = { turnId: string; sessionId: string; node: string; fence: number };

export type ClaimedTurn = {
  claim: Claim;
  turn: Turn;
  message: { text: string; outside: boolean; context: string | undefined };
  replyMessageId: string;
  /** The `seq` of the reply's `message.created` entry, which its deltas name. */
  replySeq: number;
  /** The duration of its earlier attempts, which were given back: the turn's deadline is for all of them. */
  spentMs: number;
  /** The hops of the turn's order. */
  hops: number;
  task: TurnTask | undefined;
  /** True if a budget applies: then `extendBudget` must be asked before each further step. */
  hasBudget?: true;
  /** The time for which the group of its webhooks was open, if it had one. */
  groupedMs?: number;
};

export type TurnEnd = {
  now: number;
  status: "completed" | "failed" | "cancelled";
  /** The reply as far as it was written; kept unless it is empty and the turn did not complete. */
  reply: string;
  /** Kept with the reply. */
  toolCalls?: ToolCall[] | undefined;
  error: TurnError | undefined;
  /** The model that answered, if it differs from the turn's model. Set only together with `usage`. */
  model?: string | undefined;
  usage: UsageRow | undefined;
  /** Of a turn that compacts, if it completed. */
  compaction?: CompactionEnd | undefined;
};

/** A request to compact a session. Its usage is charged to the surface and the caller. */
export type CompactionOrder = {
  now: number;
  turnId: string;
  sessionId: string;
  surface: Surface;
  caller: string;
  task: CompactionTask;
  /** Refused if the session has another compaction that has not ended. */
  isOnly?: boolean | undefined;
  limits: StoreLimits;
};

/** Without `compacted` there was nothing to replace, for the `reason`. */
export type CompactionEnd = {
  before: SessionSize;
  after: SessionSize;
  compacted: Compacted | undefined;
  reason: string | undefined;
};

/** The end of a compaction, as watchers on all gateways receive it. */
export type CompactionResult =
  | (Pick<CompactionEnd, "before" | "after" | "reason"> & { isCompacted: boolean; error: undefined })
  | { error: TurnError };

/**
 * The change of a session by a compaction: `summary` stands for all messages up to `through` (or up to that of an earlier compaction, if that
 * is later) except the ones whose `seq` is in `except`.
 */
export type Compacted = {
  summary: string;
  /** True if some of the summarized messages came from outside. */
  outside: boolean;
  through: number;
  except: readonly number[];
  before: SessionSize;
  after: SessionSize;
  /** The bytes by which `contextBytes` shrinks. */
  freedBytes: number;
};

export type Summary = { text: string; outside: boolean };

/** The usage of an attempt that reached a backend; added to the counters of its hour and to its session. */
export type UsageRow = { model: string; usage: Usage; latencyMs: number };

export type UsageCount = { hour: number; agent: string; model: string; surface: Surface; caller: string } & UsageCounts;

/** How an agent is. `failing`: the backend failed in the last of its turns that ran to an end. */
export type AgentCounts = {
  queued: number;
  /** The queued turns whose group of webhooks is open; undefined if there are none. */
  grouped?: number;
  running: number;
  /** The compactions that wait. */
  compactions: number;
  /** The events that no turn works on. */
  waitingEvents: number;
  /** The time when its next beat is due, by the wall clock; undefined when none is planned. While one runs: its due time. */
  nextBeatAt: number | undefined;
  lastEndedAt: number | undefined;
  failing: boolean;
  /** The time when it was paused; undefined if it is not. */
  pausedAt: number | undefined;
};

/** The result of pausing or resuming an agent. */
export type Pause = { pausedAt: number | undefined; isChanged: boolean };

export type RateLimit = { maxRequests: number; windowMs: number };

/** The limits of a key or token. Records of earlier versions do not have them. */
export type KeyLimits = {
  /** The only agents that it may use; undefined for all. */
  agents?: readonly string[] | undefined;
  /** The rate limit in place of the surface's. */
  rateLimit?: RateLimit | undefined;
  /** The budget that counts only its turns. */
  budget?: KeyBudget | undefined;
};

/** The cost is in the currency of the prices. */
export type KeyBudget = {
  per: "hour" | "day" | "month";
  timeZone: string;
  tokens?: number | undefined;
  cost?: number | undefined;
};

export type ApiKey = KeyLimits & {
  keyId: string;
  name: string;
  prefix: string;
  /** sha256 of the key, hex. */
  hash: string;
  scopes: readonly ("chat" | "admin")[];
  createdAt: number;
  lastUsedAt: number | undefined;
  /** Until when it is good; undefined for ever. */
  expiresAt?: number | undefined;
  /** The key that was made in its place. */
  replacedBy?: string | undefined;
};

/** The filters of a list of turns. */
export type TurnQuery = {
  status?: TurnStatus | undefined;
  agent?: string | undefined;
  sessionId?: string | undefined;
  limit: number;
  cursor?: string | undefined;
};
