/**
 * The gateway's store, and the guarantees of each engine. `test/stores/suite.ts` states every guarantee below as a test.
 *
 * For all methods:
 * - Each call is one transaction: all of it is kept or none. When its promise resolves, it is kept (for a durable engine: on
 *   disk).
 * - Calls may overlap; the outcome is that of some order of them, and a call sees every call that resolved before it began.
 * - A refusal is a GatewayError, and changes nothing. An engine that cannot answer throws `store-unavailable`.
 * - Records that are handed out are the caller's to read, never to change.
 */
import type { BudgetRefusal, BudgetStatus, ExtendOrder, GrantOrder } from "./budgets.ts";
import type { GatewayEntry, GatewayNews } from "./gateway-news.ts";
import type { OpenGroup } from "./groups.ts";
import type { InboundStore, OutgoingClaim, Page } from "./inbound.ts";
import type { NotificationStore } from "./notifications.ts";
import type { StorePolicy } from "./policy.ts";
import type {
  AgentCounts,
  ApiKey,
  BeatOrder,
  BeatStep,
  Claim,
  ClaimedTurn,
  ClaimRequest,
  CompactionOrder,
  CompactionResult,
  Entry,
  Lane,
  ListedSession,
  Message,
  Pause,
  SessionRef,
  Share,
  Summary,
  Turn,
  TurnEnd,
  TurnError,
  TurnOrder,
  TurnQuery,
  TurnStart,
  UsageCount,
  UsageCounts,
  UsageRow,
} from "./records.ts";
import type { ScheduleStore } from "./schedules.ts";
import type { SharedStore } from "./shared-store.ts";

export type * from "./budgets.ts";
export type * from "./gateway-news.ts";
export type * from "./groups.ts";
export type * from "./inbound.ts";
export type * from "./notifications.ts";
export type * from "./policy.ts";
export type * from "./records.ts";
export type * from "./schedules.ts";
export type * from "./shared-store.ts";

/** `turn`, `outgoing`: one can be claimed. `beat`: one is due earlier than planned, or can continue. `schedule`: one was planned. */
export type WorkKind = "turn" | "beat" | "outgoing" | "schedule";

/**
 * The news that an engine tells its process, after the transaction that caused them is kept. Listeners never throw and never
 * wait. Several gateways on one engine: entries of another gateway are told only to a watcher that `wants` them, and all else to
 * all watchers. A watcher that starts to want a stream must then read the entries that already exist.
 */
export interface StoreWatcher {
  /** New entries of a session, each once, in the order of `seq`. `elsewhere`: another gateway wrote them. */
  entries(session: SessionRef, entries: readonly Entry[], elsewhere?: true): void;
  /** The session and all of its records are deleted. `seq` is the one after its last entry. */
  sessionDeleted(session: SessionRef, end: { seq: number; at: number }): void;
  /** New entries of the gateway's stream, each once, in the order of `seq`. */
  gatewayEntries(entries: readonly GatewayEntry[]): void;
  /** There is work of this kind: now, or in `dueInMs`. */
  work(kind: WorkKind, dueInMs?: number): void;
  /** A running turn should end as cancelled. */
  cancel(turnId: string): void;
  /** A turn that compacts has ended, on whichever gateway. */
  compacted(turnId: string, result: CompactionResult): void;
  /**
   * A delivery was recorded, or its outcome changed with the status of its turn or event or with the state of its announcement. A deleted turn or
   * event is not reported.
   */
  delivery?(deliveryId: string, news: "recorded" | "outcome"): void;
  /** The connection to the engine was lost. Notifications of deliveries may be missing. */
  deliveriesLost?(): void;

  /** Called only by an engine that several gateways share. Returns true if this gateway follows the session or its agent. */
  wants?(session: Pick<SessionRef, "sessionId" | "agent">): boolean;
  /** The same of the gateway's stream. */
  wantsGateway?(): boolean;
  /** Another gateway has made, revoked or used keys. */
  keysChanged?(): void;
  /** Another gateway has called `askTexts`, or `putTexts`. */
  textsAsked?(sessionIds: readonly string[]): void;
  textsPut?(sessionIds: readonly string[]): void;
}

export interface Store extends InboundStore, NotificationStore, ScheduleStore, AsyncDisposable {
  readonly kind: "memory" | "sqlite" | "postgres";
  /** True if the records outlive the process. */
  readonly durable: boolean;
  /** Identifies the store's content: if the content is replaced, `epoch` changes. At most 40 letters, digits, `_` and `-`. */
  readonly epoch: string;
  /** Only an engine that several gateways share has it. */
  readonly shared?: SharedStore;

  /** Starts to notify `watcher`; the returned function ends it. */
  watch(watcher: StoreWatcher): () => void;
  /** Resolves when the engine answers, throws when it does not. */
  ping(): Promise<void>;
  /**
   * Sets the policy of this process for all calls that begin after it resolves, also after the engine was unavailable. It is not stored: each
   * process sets its own. Never rejects.
   */
  configure(policy: StorePolicy): Promise<void>;

  /**
   * Stores the message, its turn in the session's queue, the idempotency key, the delivery and the journal's entries. The session is
   * made when it is not there. A known key with the same hash starts nothing and answers the first turn (`replayed`); with another
   * hash it is `idempotency-mismatch`, and `turn-not-found` when that turn was erased. Full: `session-busy`, `gateway-busy`,
   * `session-full`, `store-full`; of the caller's share: `share-busy`, `share-full`. Another agent's session: `session-conflict`. A refusal keeps no key.
   *
   * With a `task` the turn takes its events, all of which must be queued and free. Otherwise it throws `internal` and stores nothing. When the turn
   * ends, in the same transaction: its events are handled if it completed. Otherwise each is returned with one more attempt and a step of its
   * delivery, or is dead after `maxAttempts`, with an entry in the gateway's stream. With `announce`, a turn that completes creates an
   * announcement for that channel.
   *
   * With a `group`, the turn waits until the group closes. Meanwhile later orders with the key join it, from any gateway: they change its message, model and
   * announcement as `take` says, and move the close. Their idempotency keys and deliveries are stored with the turn, and they are refused only by the limits on
   * bytes and by spent budgets. An order opens a group if there is none, if its message would make the text too long (then the old group closes at once), or
   * if the group's turn has another agent. An open group blocks no other turn and has no entries, and the turn's `seq` is 0. At its close, or if the turn
   * ends before, its message is appended and the turn goes to the end of its session's queue. `joinedBy` is the delivery of the order that joined.
   */
  startTurn(order: TurnOrder): Promise<TurnStart>;
  /**
   * Begins a due beat of an agent, or continues it, in one transaction: takes the oldest events that are not part of a turn, up to the newest
   * at the beginning of the beat and at most a batch, and queues a turn with them. Events that this beat returned wait for the next one. Without
   * events the beat ends, and the next is planned, or due immediately if `beatNow` was requested. A beat that had events gets an entry in the gateway's stream.
   *
   * An agent's beat has at most one unfinished turn on all gateways together. While that turn is unfinished, or if the beat is not due, returns `not-due` and
   * stores nothing. If the turn is refused as in `startTurn`, the beat stays due. Any end of the turn makes the beat due again, in the same transaction.
   */
  startBeat(order: BeatOrder): Promise<BeatStep>;
  /**
   * The answer that `startTurn` would give to a repeat: the turn that the key started, undefined for a free key, and the same
   * refusals for another hash or an erased turn.
   */
  findReplay(
    key: { key: string; hash: string },
    now: number,
  ): Promise<{ turn: Turn; joinedBy: string | undefined } | undefined>;
  /** The open group that an order with this key would join; undefined if there is none. */
  findGroup(key: string, now: number): Promise<OpenGroup | undefined>;

  /**
   * Claims up to `free` turns: only heads of their session's queue, never two of a session at once, at most `freeOf(agent, lane)` of an
   * agent (0: none) in each lane. It alternates between turns that a caller waits for and other turns. In each kind the turn that has been
   * ready longest comes first: a turn becomes ready as it becomes first in its queue, and again when it is given back and its
   * delay is over. `nextDueInMs` is the time until a turn that was given back with a delay can be claimed. A turn
   * whose budget is spent and refuses is ended instead of claimed; `refusedBy` has the budget of each of these. `closesGroups`: a store that is not durable
   * first closes all open groups, whose turns would be lost.
   */
  claimTurns(
    request: Omit<ClaimRequest, "replyMessageId"> & {
      free: number;
      freeOf(agent: string, lane: Lane): number;
      newMessageId(): string;
      closesGroups?: boolean;
    },
  ): Promise<{ turns: ClaimedTurn[]; nextDueInMs: number | undefined; refusedBy?: readonly string[] }>;

  /** Extends the leases of valid claims of turns and outgoing messages. Returns the claims that are no longer valid. */
  extendClaims(claims: readonly (Claim | OutgoingClaim)[], leaseMs: number): Promise<(Claim | OutgoingClaim)[]>;

  /**
   * Ends a turn, with its reply, its usage and its entries, and queues a notification for each endpoint of the policy that has this event, as any other
   * end of a turn does. False, and nothing kept but the usage, when the claim does not hold any
   * more. Usage is counted once per attempt that reached a backend, also when its session was deleted or its lease ended meanwhile.
   */
  endTurn(claim: Claim, end: TurnEnd): Promise<boolean>;

  /**
   * Gives a turn back to the head of its session's queue, not to be claimed for `delayMs`; one that was to be cancelled ends as that.
   * False when the claim does not hold; its usage is counted all the same. `replyBytes` is set if the backend has worked on the attempt: budgets then count
   * an estimate for one without reported usage.
   */
  releaseTurn(
    claim: Claim,
    release: { now: number; delayMs: number; usage: UsageRow | undefined; replyBytes?: number | undefined },
  ): Promise<boolean>;

  /** Cancels a queued turn at once; notifies the watchers of a running one. Returns the turn in its new state; `turn-ended` if it had ended. */
  cancelTurn(turnId: string, now: number): Promise<Turn>;

  /**
   * Announces the reply of a completed turn again, on its channel and from the first attempt, with the larger of its own `hops` and the given ones. `turn-not-found`;
   * `reply-not-announceable` if it had no announcement, or if that has not ended. `by` is added to the timeline of its delivery.
   */
  announceAgain(turnId: string, again: { now: number; by: string; hops: number }): Promise<Turn>;

  /**
   * Fails every queued turn of an agent, session by session as they were made, and in each in the order of its queue. Answers
   * their number.
   */
  failQueuedTurns(agent: string, error: TurnError, now: number): Promise<number>;

  /** The turn, with its reply once it has one; undefined when there is none. */
  getTurn(turnId: string): Promise<Turn | undefined>;
  /**
   * Turns without their replies, newest first: each that stays is on one page once, whatever starts, ends or goes meanwhile.
   * Finds queued and running turns among the unfinished ones. Among all others a page looks at `MOST_LOOKED_AT` at most, so that
   * it may hold fewer than `limit`, or none, and still have a `next`. `cursor` is the `next` of an earlier page; one that no page
   * gave is `invalid-params`.
   */
  listTurns(query: TurnQuery): Promise<Page<Turn>>;
  getSession(sessionId: string): Promise<ListedSession | undefined>;
  /** The most recently created first; of all agents, or of `agents`. `cursor` is the `next` of an earlier page; any other value throws `invalid-params`. */
  listSessions(query: { agents?: readonly string[]; limit: number; cursor?: string }): Promise<Page<ListedSession>>;
  /**
   * Entries after `seq`, in order. The cost depends on the result only, not on the place in the journal. If the first entry is
   * not the one after `seq`, the entries between were erased.
   */
  readEntries(sessionId: string, query: { after: number; limit: number }): Promise<Entry[]>;
  /**
   * Messages whose text is complete, newest first, below `before`; compacted ones and tool calls only when they are asked for. At most
   * `limit`. Stops after the message with which the texts and tool calls reach `characters`.
   */
  readMessages(
    sessionId: string,
    query: {
      before?: number;
      limit: number;
      characters?: number;
      includeCompacted?: boolean;
      includeToolCalls?: boolean;
    },
  ): Promise<Message[]>;

  /**
   * Queues a turn that compacts its session, after the waiting turns of the session. Later turns of the session begin after its end. The turn is
   * claimed, extended, ended and released like other turns, in its own lane. With `end.compaction`, its end replaces the summary, marks
   * the messages and appends the entry, in one transaction; then the turn is deleted, and all watchers are notified of the result. Lists and
   * the counts of the session, the agent and the gateway do not include it.
   * Refused: `session-not-found`, `session-busy` (limits.turnsPerSession turns are waiting, including compactions, or `isOnly` is set and a
   * compaction of the session has not ended), `store-full`.
   */
  startCompaction(order: CompactionOrder): Promise<void>;

  /** The summary of the session's compacted messages; undefined before the first compaction. */
  readSummary(sessionId: string): Promise<Summary | undefined>;
  /**
   * Cancels its queued turns, tells the watchers of a running one, and erases messages, journal, announcements on their way, and
   * the bodies and step details of its deliveries. Usage stays; events that its turns worked on go back as from turns that
   * failed. Returns the number of ended turns; undefined if the session does not exist or its agent is not in `agents`.
   */
  deleteSession(
    sessionId: string,
    now: number,
    agents?: readonly string[],
  ): Promise<{ turnsCancelled: number } | undefined>;

  /** Counters whose hour lies in [from, to); of all agents, or of some. */
  readUsage(query: { from: number; to: number; agents?: readonly string[] }): Promise<UsageCount[]>;
  /**
   * The sums of the counters by one of their keys. A day is given as its start in UTC. Keys without counters are left out.
   * `withoutUsage` is the number of completed turns of those counters without any tokens.
   */
  sumUsage(query: {
    from: number;
    to: number;
    agents?: readonly string[];
    by: "agent" | "model" | "surface" | "caller" | "hour" | "day";
  }): Promise<{ key: string | number; counts: UsageCounts; withoutUsage: number }[]>;

  /** The shares of all callers that hold something, in any order. */
  readShares(): Promise<Share[]>;

  /**
   * Pauses an agent, or resumes it. While it is paused, its turns are not claimed, not even by `startTurn`,
   * and its beats do not begin. Valid claims and compactions continue. Waiting work stays in its order, and can be claimed at once when
   * the agent is resumed. A pause belongs to the agent's name, on any gateway, until it is resumed. A change goes to the
   * gateway's stream. A repeat changes nothing: a second pause keeps the time of the first.
   */
  setPaused(agent: string, order: { paused: boolean; now: number; streamKeep: number }): Promise<Pause>;

  /** All budgets of the policy, in its order. */
  listBudgets(): Promise<BudgetStatus[]>;
  /**
   * Raises a budget's limits. The change goes to the gateway's stream, and turns that wait for the budget can begin. `budget-not-found`. `invalid-request`
   * for a unit that the budget does not limit, for no unit, and for an end that is past.
   */
  grantBudget(name: string, order: GrantOrder): Promise<BudgetStatus>;
  /**
   * Reserves the next step of a running turn, or returns the first budget without room. If this is not spent, the turn keeps only its use reserved, and asks
   * again later. A turn to which no budget applies, and a claim that is not valid any more, are never refused.
   */
  extendBudget(claim: Claim, order: ExtendOrder): Promise<BudgetRefusal | undefined>;

  /** Appends to the gateway's stream, which keeps its newest `keep` entries. */
  appendGatewayEntry(news: GatewayNews, append: { now: number; keep: number }): Promise<GatewayEntry>;
  /** Entries of the gateway's stream after `after`, in order; `first` is the oldest that is kept (or the next to come), `last` the newest ever. */
  readGatewayEntries(query: {
    after: number;
    limit: number;
  }): Promise<{ entries: GatewayEntry[]; first: number; last: number }>;

  /** Keys in the order of their making; at most a few hundred, so they come whole. */
  listKeys(): Promise<ApiKey[]>;
  createKey(key: ApiKey): Promise<void>;
  /**
   * Makes `key` in the place of another, which ends at `endsAt` unless it ends sooner. Both or neither: false, and nothing is kept, where
   * the other is not there or was replaced already.
   */
  replaceKey(keyId: string, key: ApiKey, endsAt: number): Promise<boolean>;
  revokeKey(keyId: string): Promise<boolean>;
  touchKey(keyId: string, now: number): Promise<void>;

  /**
   * Handles all that is past its time: claims whose lease ended go back to their queue (or fail with `lost` after
   * `maxAttempts`) session by session as they were made, idempotency keys whose time
   * ended by `keysBefore`, sessions past their retention without unfinished turns or announcements, usage past its days, entries
   * of the gateway's stream past theirs, events that ended before `eventsBefore`, outgoing messages whose lease ended. A
   * slice at a time: true when there is more.
   *
   * In a session that goes on it erases the head of the journal: all entries before the first that is later than the session's
   * bound (`sessionsBefore`, for `webhook:` `webhookSessionsBefore`) or of a turn that is to be kept. That is one that has not
   * ended, or later than the bound; whose announcement is on its way; or with a message that no summary stands for. A turn goes
   * with its first entry, as one that was deleted with its session does, though later ones may stay where turns overlap.
   * `lastSeq`, `messageCount` and usage stay.
   */
  sweep(request: {
    now: number;
    maxAttempts: number;
    lost: TurnError;
    sessionsBefore: number;
    webhookSessionsBefore: number;
    usageBefore: number;
    gatewayBefore: number;
    eventsBefore: number;
    keysBefore: number;
  }): Promise<boolean>;

  /**
   * Counts for health and metrics; cheap. `bytes` is all, of which the recorder has `deliveryBytes`: these count for no limit,
   * except the bytes that it holds past its own limit for unfinished work.
   */
  stats(): {
    sessions: number;
    turnsQueued: number;
    turnsRunning: number;
    /** Events that wait or that a turn works on. */
    eventsQueued: number;
    eventsDead: number;
    announcements: number;
    /** Notifications that have not ended, by endpoint. */
    notifications: Readonly<Record<string, number>>;
    bytes: number;
    deliveryBytes: number;
    deliveries: number;
  };
  /** The same of one agent, cheap enough for every call. All zero for one that never had a turn. */
  agentCounts(agent: string): Readonly<AgentCounts>;
  /** Agents with turns or events that have not ended, in any order. */
  openAgents(): Promise<string[]>;
}
