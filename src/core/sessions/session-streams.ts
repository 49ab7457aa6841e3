import { type Follower, Stream, type Taker } from "#core/follow.ts";
import { type LiveReplies, readSince } from "#core/turns/live-replies.ts";
import { addListener, type Listeners, notifyListeners } from "#kit/listeners.ts";
import { readAtTickEnd } from "#kit/tick-end.ts";
import type { Entry, SessionRef, Store, StoreWatcher, Turn } from "#store/store.ts";
import { isTurnEnd, type TurnEndEntry } from "./turn-entries.ts";

/** The text of a reply that is being written. `seq` is that of its `message.created`. */
export type WrittenReply = {
  turnId: string;
  messageId: string;
  seq: number;
  length: number;
  textSince(offset: number): string;
};

/** The place of a session's deletion in its stream. */
export type DeletedAt = { seq: number; at: number };

/** A follower of a session. It gets the pieces of replies in addition to the entries. Pieces are not stored: a taker that is in backfill misses them. */
export interface SessionTaker extends Taker<Entry> {
  /** True if the taker needs the pieces of this turn's reply, or of any reply. Other gateways send the pieces of their turns only if a taker needs them. */
  wantsPieces(turnId: string | undefined): boolean;
  /** Called at the end of each tick in which the reply has grown, and soon after a follower has reached the end of the stream. Not called after the published end of the reply. */
  written(reply: WrittenReply): void;
  /** Called when all new entries are passed on and no reply is being written. */
  quiet?(): void;
  /** Called when the end of a turn is published, also if the taker is at a later place. */
  ended?(turnId: string): void;
  /** Called when the session was deleted. The stream has no further entries, so the taker must leave. */
  deleted(session: SessionRef, end: DeletedAt): void;
}

/** A follower of all sessions of an agent. */
export interface AgentFollower {
  /** Called before the followers of a session get its entries after `before`. */
  joinByAgent(sessionId: string, before: number): void;
  deleted(session: SessionRef, end: DeletedAt): void;
}

/**
 * Called with the entry that ends the turn. `erased`: the turn was deleted with its session. `not-stored`: the turn has ended, but its end
 * could not be stored, because the store is full. The turn will run again later.
 */
type EndListener = (end: TurnEndEntry | "erased" | "not-stored") => void;
/** A turn and its session. */
type TurnPlace = Pick<Turn, "turnId" | "sessionId">;

type StreamParts = {
  store: Pick<Store, "readEntries" | "getSession">;
  live: LiveReplies;
  streams: Map<string, SessionStream>;
};

/** A session's stream, with the pieces of the reply that is being written. It exists while it has followers. */
export class SessionStream extends Stream<Entry, SessionTaker> {
  readonly sessionId: string;
  /** 0 if the session does not exist or has not been read yet. */
  ordinal = 0;
  agent: string | undefined = undefined;
  /** The reply that began last while the stream had followers. */
  begun: { turnId: string; seq: number } | undefined = undefined;
  readonly #parts: StreamParts;
  /** The turn of the last reply in the entries so far, if the reply's end is not among them. */
  #unfinished: string | undefined = undefined;
  /** The turn of the last reply that has ended in the entries so far. */
  #endedTurn: string | undefined = undefined;
  #noted = 0;
  /** The turn whose pieces are read. */
  #writing: string | undefined = undefined;
  #stopReading = (): void => {};
  #stopSeeking: (() => void) | undefined = undefined;

  constructor(parts: StreamParts, sessionId: string) {
    super();
    this.#parts = parts;
    this.sessionId = sessionId;
    parts.streams.set(sessionId, this);
  }

  async read(after: number, limit: number): Promise<readonly Entry[]> {
    const entries = await this.#parts.store.readEntries(this.sessionId, { after, limit });
    // The session may be new. Its agent decides which callers may read the entries.
    if (this.agent === undefined && entries.length > 0) await this.identify();
    for (const entry of entries) this.#note(entry);
    return entries;
  }

  /** Reads the session if its ordinal is unknown. */
  async identify(): Promise<void> {
    const session = this.ordinal === 0 ? await this.#parts.store.getSession(this.sessionId) : undefined;
    if (session) this.setSession(session);
  }

  setSession({ ordinal, agent }: Pick<SessionRef, "ordinal" | "agent">): void {
    this.ordinal = ordinal;
    this.agent = agent;
  }

  entries(session: SessionRef, entries: readonly Entry[]): void {
    this.setSession(session);
    this.publish(entries);
    for (const { taker } of this.followers) this.notifyIfQuiet(taker);
  }

  deleted(session: SessionRef, end: DeletedAt): void {
    for (const { taker } of this.followers) taker.deleted(session, end);
  }

  /** Passes the text so far to a follower that starts in the middle of a reply. */
  override onCaughtUp({ taker }: Follower<Entry, SessionTaker>): void {
    this.pollForReply();
    this.notifyIfQuiet(taker);
  }

  override onAbandoned(): void {
    const { streams } = this.#parts;
    if (streams.get(this.sessionId) === this) streams.delete(this.sessionId);
    this.#stop();
    this.#stopSeeking?.();
  }

  /** Notes whether the last reply has ended. */
  #note(entry: Entry): void {
    if (entry.seq <= this.#noted) return;
    this.#noted = entry.seq;
    const { name, turnId } = entry;
    if (name === "message.created" && entry.role === "assistant") this.#unfinished = turnId;
    else if (name === "message.completed" || isTurnEnd(entry)) {
      this.#unfinished = undefined;
      this.#endedTurn = turnId;
    }
  }

  protected override published(entry: Entry): void {
    this.#note(entry);
    if (entry.name === "message.created") {
      if (entry.role !== "assistant") return;
      this.begun = { turnId: entry.turnId, seq: entry.seq };
      this.readPieces(entry.turnId);
    } else if (entry.name === "message.completed" || isTurnEnd(entry)) {
      if (entry.turnId === this.#writing) this.#stop();
      if (isTurnEnd(entry)) for (const { taker } of this.followers) taker.ended?.(entry.turnId);
    }
  }

  /** Passes on the pieces of the reply that is being written. If this gateway has none, looks for one that another gateway is writing. */
  readonly pollForReply = (): void => {
    const { live } = this.#parts;
    const reply = live.ofSession(this.sessionId);
    // A reply may stay in memory for a moment after its end.
    if (!reply || reply.turnId === this.#endedTurn) {
      if (this.#unfinished) this.readPieces(this.#unfinished);
      else if (this.#hasTakerOf(undefined)) this.#stopSeeking ??= live.seek(this.sessionId, this.pollForReply);
      return;
    }
    this.readPieces(reply.turnId);
    this.passSoon();
  };

  /** Passes on the pieces of a reply that has begun, if a taker wants them. */
  readPieces(turnId: string): void {
    if (turnId === this.#writing || !this.#hasTakerOf(turnId)) return;
    this.#stopReading();
    this.#writing = turnId;
    this.#stopReading = this.#parts.live.read(this.sessionId, this.#pass);
  }

  #hasTakerOf(turnId: string | undefined): boolean {
    for (const { taker } of this.followers) if (taker.wantsPieces(turnId)) return true;
    return false;
  }

  /** Passes on the text so far at the end of the tick. */
  passSoon(): void {
    readAtTickEnd(this.#pass);
  }

  /** The text of one tick of the event loop is one piece. */
  readonly #pass = (): void => {
    const reply = this.#parts.live.ofSession(this.sessionId);
    if (!reply || reply.turnId !== this.#writing) return;
    const { turnId, messageId, seq, length } = reply;
    const written = { turnId, messageId, seq, length, textSince: (offset: number) => readSince(reply, offset) };
    for (const { taker } of this.followers) taker.written(written);
  };

  #stop(): void {
    this.#stopReading();
    this.#stopReading = () => {};
    this.#writing = undefined;
  }

  /** Notifies a taker if no reply is being written. */
  notifyIfQuiet(taker: SessionTaker): void {
    if (!this.#writing) taker.quiet?.();
  }
}

/** The streams of the sessions that have followers, and the waiters for the ends of turns. */
export function createSessionStreams(given: Omit<StreamParts, "streams">) {
  const streams = new Map<string, SessionStream>();
  const parts = { ...given, streams };
  const ofAgent: Listeners<AgentFollower> = new Map();
  const waiters: Listeners<{ turnId: string; end: EndListener }> = new Map();
  const notifyEnd = ({ turnId, sessionId }: TurnPlace, end: Parameters<EndListener>[0]): void =>
    notifyListeners(waiters, sessionId, (one) => one.turnId === turnId && one.end(end));
  const watcher: Pick<StoreWatcher, "entries" | "sessionDeleted"> = {
    entries(session, entries) {
      const { sessionId, agent } = session;
      if (waiters.size > 0)
        for (const entry of entries) if (isTurnEnd(entry)) notifyEnd({ turnId: entry.turnId, sessionId }, entry);
      const [first] = entries;
      if (first && ofAgent.size > 0)
        notifyListeners(ofAgent, agent, (one) => one.joinByAgent(sessionId, first.seq - 1));
      streams.get(sessionId)?.entries(session, entries);
    },
    sessionDeleted(session, end) {
      notifyListeners(waiters, session.sessionId, (one) => one.end("erased"));
      streams.get(session.sessionId)?.deleted(session, end);
      notifyListeners(ofAgent, session.agent, (one) => one.deleted(session, end));
    },
  };
  return {
    watcher,
    /** The stream of a session. The caller must add a follower to a new stream immediately, because a stream is removed only when its last follower leaves. */
    of: (sessionId: string): SessionStream => streams.get(sessionId) ?? new SessionStream(parts, sessionId),
    /** Follows all sessions of an agent. Returns a function that stops it. */
    followAgent: (name: string, follower: AgentFollower): (() => void) => addListener(ofAgent, name, follower),
    /** Returns a function that ends the wait. */
    onTurnEnd: ({ turnId, sessionId }: TurnPlace, end: EndListener): (() => void) =>
      addListener(waiters, sessionId, { turnId, end }),
    turnNotStored: (turn: TurnPlace): void => notifyEnd(turn, "not-stored"),
    /** True if the session or its agent has a follower, or a turn of the session has a waiter. */
    wants: ({ sessionId, agent }: Pick<SessionRef, "sessionId" | "agent">): boolean =>
      streams.has(sessionId) || waiters.has(sessionId) || ofAgent.has(agent),
  };
}

export type SessionStreams = ReturnType<typeof createSessionStreams>;
