/**
 * What the gateway keeps, and what each engine guarantees about it. `test/stores/suite.ts` states every guarantee below as a test.
 *
 * For all methods:
 * - Each call is one transaction: all of it is kept or none. What a promise resolved for is kept (for a durable engine: on disk).
 * - Calls may overlap; the outcome is that of some order of them, and a call sees every call that resolved before it began.
 * - What is refused is a GatewayError, and changes nothing. An engine that cannot answer throws `store-unavailable`.
 * - Records that are handed out are the caller's to read, never to change.
 */
import type { ErrorName } from "#core/errors.ts";

export type Usage = { input: number; output: number };
export type Role = "user" | "assistant" | "system" | "tool";
export type TurnStatus = "queued" | "running" | "completed" | "failed" | "cancelled";
export type Surface = "rest" | "rpc" | "hooks" | "heartbeat";

/** One conversation of one agent. */
export type Session = {
  sessionId: string;
  agent: string;
  channel: string;
  userId: string;
  createdAt: number;
  updatedAt: number;
  /** The `seq` of its newest journal entry. */
  lastSeq: number;
  messageCount: number;
  turnsQueued: number;
  usage: Usage;
};

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
};

export type TurnError = { name: ErrorName; detail: string | undefined };

/** One run of an agent on a session. */
export type Turn = {
  turnId: string;
  sessionId: string;
  agent: string;
  surface: Surface;
  /** The name of the token that started it. */
  caller: string;
  status: TurnStatus;
  /** How often it was claimed. */
  attempt: number;
  createdAt: number;
  /** When the latest attempt began. */
  startedAt: number | undefined;
  endedAt: number | undefined;
  model: string | undefined;
  skillIds: readonly string[];
  messageId: string;
  /** The `seq` of its `turn.queued` entry. */
  seq: number;
  reply: string | undefined;
  error: TurnError | undefined;
  /** Of all its attempts so far; undefined before the first has ended. */
  usage: Usage | undefined;
  deliveryId: string | undefined;
};

/** What happened to a session, in order: `seq` begins at 1 and grows by one. */
export type Entry = { seq: number; at: number; turnId: string } & (
  | { name: "message.created"; messageId: string; role: Role; text: string; outside: boolean }
  | { name: "message.completed"; messageId: string; text: string }
  | { name: "turn.queued" }
  | { name: "turn.started"; attempt: number }
  | { name: "turn.completed"; usage: Usage; reply: string }
  | { name: "turn.failed"; usage: Usage; error: TurnError }
  | { name: "turn.cancelled"; usage: Usage; reply: string }
);

/** One inbound request, as the flight recorder keeps it. */
export type Delivery = {
  deliveryId: string;
  at: number;
  surface: Surface;
  operation: string;
  method: string;
  path: string;
  address: string;
  requestId: string;
  caller: string;
  /** A line `name: value` for each header, names in small letters, without those that are secret. One text, as there are many. */
  headers: string;
  /** As it came; undefined where bodies are switched off, or after its session was deleted. */
  body: Uint8Array | undefined;
  bytes: number;
};

export type StoreLimits = { turnsPerSession: number; turns: number; messagesPerSession: number; storeBytes: number };
export type RecorderLimits = { entries: number; bytes: number };

/** What is asked for when work starts. Ids are made by the caller, so that an engine needs no randomness. */
export type TurnOrder = {
  now: number;
  turnId: string;
  messageId: string;
  session: { sessionId: string; agent: string; channel: string; userId: string };
  surface: Surface;
  caller: string;
  text: string;
  outside: boolean;
  model: string | undefined;
  skillIds: readonly string[];
  /** Somebody waits for the reply: it goes in the lane that `claimTurns` takes by turns with the other. */
  waited: boolean;
  idempotency: { key: string; hash: string; expiresAt: number } | undefined;
  delivery: Delivery | undefined;
  limits: StoreLimits;
  recorder: RecorderLimits;
  /** Claim it in the same transaction, when nothing of its session is before it. */
  claim: ClaimRequest | undefined;
};

export type TurnStart = { turn: Turn; replayed: boolean; claimed: ClaimedTurn | undefined };

export type ClaimRequest = { now: number; node: string; leaseMs: number; replyMessageId: string };

/** The right to run a turn until its lease ends. `fence` grows with each claim of the turn. */
export type Claim = { turnId: string; sessionId: string; node: string; fence: number };

export type ClaimedTurn = {
  claim: Claim;
  turn: Turn;
  message: { text: string; outside: boolean };
  replyMessageId: string;
  /** The `seq` of the reply's `message.created` entry, which its deltas name. */
  replySeq: number;
};

export type TurnEnd = {
  now: number;
  status: "completed" | "failed" | "cancelled";
  /** What was written of the reply; kept unless it is empty and the turn did not complete. */
  reply: string;
  error: TurnError | undefined;
  usage: UsageRow | undefined;
};

/** What an attempt that reached a backend used; added to the counters of its hour and to its session. */
export type UsageRow = { model: string; usage: Usage; latencyMs: number };

export type UsageCount = {
  hour: number;
  agent: string;
  model: string;
  surface: Surface;
  caller: string;
  attempts: number;
  completed: number;
  failed: number;
  cancelled: number;
  latencyMs: number;
} & Usage;

export type ApiKey = {
  keyId: string;
  name: string;
  prefix: string;
  /** sha256 of the key, hex. */
  hash: string;
  scopes: readonly ("chat" | "admin")[];
  createdAt: number;
  lastUsedAt: number | undefined;
};

export type Page<T> = { items: T[]; next: string | undefined };

/** What an engine tells the process it runs in, after the transaction that caused it is kept. Listeners never throw and never wait. */
export interface StoreWatcher {
  /** New entries of a session, each once, in the order of `seq`. */
  entries(sessionId: string, entries: readonly Entry[]): void;
  /** The session and all it held are gone. */
  sessionDeleted(sessionId: string): void;
  /** Some turn can be claimed now. */
  work(): void;
  /** A running turn should end as cancelled. */
  cancel(turnId: string): void;
}

export interface Store extends AsyncDisposable {
  readonly kind: "memory" | "sqlite" | "postgres";
  /** What it keeps outlives the process. */
  readonly durable: boolean;

  /** Begins to tell `watcher`; the returned function ends it. */
  watch(watcher: StoreWatcher): () => void;
  /** Resolves when the engine answers, throws when it does not. */
  ping(): Promise<void>;

  /**
   * Stores the message, its turn in the session's queue, the idempotency key, the delivery and the journal's entries. The session is
   * made when it is not there. A known key with the same hash starts nothing and answers the first turn (`replayed`); with another
   * hash it is `idempotency-mismatch`, and `turn-not-found` when that turn was erased. Full: `session-busy`, `gateway-busy`,
   * `session-full`, `store-full`. Another agent's session: `session-conflict`. A refusal keeps no key.
   */
  startTurn(order: TurnOrder): Promise<TurnStart>;

  /**
   * Claims up to `free` turns: only heads of their session's queue, never two of a session at once, at most `freeOf(agent)` of an agent
   * (0: none), oldest first, taking by turns those that are waited for and those that are not. `nextDueInMs` is how long
   * until a turn that was given back with a delay can be claimed.
   */
  claimTurns(
    request: Omit<ClaimRequest, "replyMessageId"> & {
      free: number;
      freeOf(agent: string): number;
      newMessageId(): string;
    },
  ): Promise<{ turns: ClaimedTurn[]; nextDueInMs: number | undefined }>;

  /** Extends the leases of claims that still hold; answers those that do not. */
  extendClaims(claims: readonly Claim[], leaseMs: number): Promise<Claim[]>;

  /** Ends a turn, with its reply, its usage and its entries. False, and nothing kept, when the claim does not hold any more. */
  endTurn(claim: Claim, end: TurnEnd): Promise<boolean>;

  /**
   * Gives a turn back to the head of its session's queue, not to be claimed for `delayMs`; one that was to be cancelled ends as that.
   * False when the claim does not hold.
   */
  releaseTurn(claim: Claim, release: { now: number; delayMs: number; usage: UsageRow | undefined }): Promise<boolean>;

  /** Cancels a queued turn at once; tells the watchers of a running one. Answers the turn as it is then; `turn-ended` when it had ended. */
  cancelTurn(turnId: string, now: number): Promise<Turn>;

  /** Fails every queued turn of an agent; answers how many. */
  failQueuedTurns(agent: string, error: TurnError, now: number): Promise<number>;

  /** The turn, with its reply once it has one; undefined when there is none. */
  getTurn(turnId: string): Promise<Turn | undefined>;
  getSession(sessionId: string): Promise<Session | undefined>;
  /** Newest created first. `cursor` is the `next` of an earlier page; one that no page gave is `invalid-params`. */
  listSessions(query: { agent?: string; limit: number; cursor?: string }): Promise<Page<Session>>;
  /** Entries after `seq`, in order. Costs what it returns, wherever in the journal it begins. */
  readEntries(sessionId: string, query: { after: number; limit: number }): Promise<Entry[]>;
  /** Messages whose text is complete, newest first, below `before`. */
  readMessages(sessionId: string, query: { before?: number; limit: number }): Promise<Message[]>;
  /** Cancels its queued turns, tells the watchers of a running one, and erases messages, journal and recorded bodies. Usage stays. */
  deleteSession(sessionId: string, now: number): Promise<boolean>;

  /** One that the recorder still keeps: the newest within its limits, and all whose turn has not ended. */
  getDelivery(deliveryId: string): Promise<Delivery | undefined>;
  /** Counters whose hour lies in [from, to). */
  readUsage(query: { from: number; to: number; agent?: string }): Promise<UsageCount[]>;

  /** Keys in the order of their making; at most a few hundred, so they come whole. */
  listKeys(): Promise<ApiKey[]>;
  createKey(key: ApiKey): Promise<void>;
  revokeKey(keyId: string): Promise<boolean>;
  touchKey(keyId: string, now: number): Promise<void>;

  /**
   * Puts right what time has done: claims whose lease ended go back to their queue (or fail with `lost` after `maxAttempts`),
   * idempotency keys past their time, sessions past their retention without unfinished turns, usage past its days. A slice at a time:
   * true when there is more.
   */
  sweep(request: {
    now: number;
    maxAttempts: number;
    lost: TurnError;
    sessionsBefore: number;
    webhookSessionsBefore: number;
    usageBefore: number;
  }): Promise<boolean>;

  /** Counts for health and metrics; cheap. */
  stats(): { sessions: number; turnsQueued: number; turnsRunning: number; bytes: number; deliveries: number };
}
