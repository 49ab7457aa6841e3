import type { DeletedAt, Journal } from "#core/sessions/journal.ts";
import type { LiveReplies, LiveReply } from "#core/turns/live-replies.ts";
import { readAtTickEnd } from "#kit/tick-end.ts";
import type { Entry, Session, SessionRef, Store } from "#store/store.ts";
import type { Frame } from "./frame.ts";
import type { PushFrames } from "./pushes.ts";
import { isTurnEnd, type Reader, type Sender, Stream } from "./streams.ts";

export type SessionStreamParts = {
  store: Store;
  journal: Journal;
  live: LiveReplies;
  frames: PushFrames;
  /** The streams that have readers, by session id. */
  sessions: Map<string, SessionStream>;
};

/** The fields of a reply that its pieces need. The reply may be complete. */
type PiecesOf = Pick<LiveReply, "turnId" | "messageId" | "seq" | "length">;
/** The last piece that was sent. Readers at the same offset share its frame. */
type Piece = { seq: number; offset: number; length: number; frame: Frame };

/** A session's stream, with the pieces of the reply that is being written. */
export class SessionStream extends Stream<Entry> {
  readonly sessionId: string;
  /** 0 if the session does not exist or has not been read yet. */
  ordinal = 0;
  agent: string | undefined = undefined;
  readonly #parts: SessionStreamParts;
  readonly #unfollow: () => void;
  /** The turn whose reply is followed, and the `seq` of that reply. */
  #turnId: string | undefined = undefined;
  #replySeq = 0;
  /** The turn whose end was published last. */
  #endedTurn: string | undefined = undefined;
  #stopReading = (): void => {};
  #stopSeeking: (() => void) | undefined = undefined;
  #piece: Piece | undefined = undefined;

  constructor(parts: SessionStreamParts, sessionId: string) {
    super();
    this.#parts = parts;
    this.sessionId = sessionId;
    parts.sessions.set(sessionId, this);
    this.#unfollow = parts.journal.follow(sessionId, this);
  }

  override get writing(): string {
    return this.#turnId ?? "";
  }

  frameOf(entry: Entry): Frame {
    return this.#parts.frames.entry(this, entry);
  }

  async read(after: number, limit: number): Promise<readonly Entry[]> {
    if (this.ordinal === 0) await this.#lookUp();
    return await this.#parts.store.readEntries(this.sessionId, { after, limit });
  }

  async #lookUp(): Promise<void> {
    const session = await this.#parts.store.getSession(this.sessionId);
    if (session) this.setSession(session);
  }

  resetFrame(seq: number): Frame {
    const { frames } = this.#parts;
    return frames.reset(frames.sessionCursor(this, seq), this.sessionId);
  }

  setSession({ ordinal, agent }: Pick<Session, "ordinal" | "agent">): void {
    this.ordinal = ordinal;
    this.agent = agent;
  }

  /** The journal's listener. */
  entries(entries: readonly Entry[], session: SessionRef): void {
    this.setSession(session);
    this.publish(entries);
    this.releaseIdle();
  }

  /** The journal's listener. The deletion also ends the turns of the session. */
  deleted(session: SessionRef, end: DeletedAt): void {
    const frame = this.#parts.frames.deleted(session, end);
    for (const reader of this.readers) {
      const { owner, isSubscribed, isHeld, senders } = reader;
      owner.drop(reader);
      // A subscriber of the agent is notified as such.
      if (owner.agents.has(session.agent)) continue;
      if (isSubscribed || isHeld) owner.pushDeleted(frame);
      else for (const { call } of senders) call.pushAfterAnswer(frame);
    }
  }

  close(): void {
    const { sessions } = this.#parts;
    this.#unfollow();
    if (sessions.get(this.sessionId) === this) sessions.delete(this.sessionId);
    this.#stopListening();
    this.#stopSeeking?.();
  }

  /** A reader that starts in the middle of a reply gets the text that was written so far. */
  override caughtUp(): void {
    this.#pollForReply();
    this.releaseIdle();
  }

  /** Releases readers that subscribe to the agent only, unless a reply is being written or they have entries to read. */
  releaseIdle(): void {
    if (this.#turnId !== undefined) return;
    for (const reader of this.readers) if (reader.isSubscribed && !reader.isNamed && !reader.isBehind) reader.release();
  }

  /** Starts sending the pieces of a turn's reply to its sender. `replySeq` is the `seq` of the reply if it has just begun. */
  sendPieces(turnId: string, replySeq: number | undefined): void {
    if (replySeq === undefined) this.#pollForReply();
    else this.#listen(turnId, replySeq);
    // Pieces need a cursor, and a cursor needs the session's ordinal. If the session cannot be read now, the end of the turn contains the whole reply.
    if (this.ordinal === 0)
      this.#lookUp().then(
        () => readAtTickEnd(this.#sendText),
        () => {},
      );
  }

  protected override before(entry: Entry): void {
    if (entry.name !== "message.completed" || entry.turnId !== this.#turnId) return;
    // The pieces of this tick have not been sent. They are sent now, so that a client that joins pieces has the whole reply before its end.
    const { turnId, messageId, text } = entry;
    const seq = this.#replySeq;
    const isWanted = (reader: Reader) => reader.replySeq === seq && reader.offset > 0;
    const reply = { turnId, messageId, seq, length: text.length };
    this.#pushPieces(reply, (offset) => text.slice(offset), isWanted, pushLast);
  }

  protected override after(entry: Entry): void {
    if (entry.name === "message.created") {
      if (entry.role === "assistant") this.#listen(entry.turnId, entry.seq);
    } else if (entry.name === "message.completed" || isTurnEnd(entry)) {
      this.#endedTurn = entry.turnId;
      if (entry.turnId === this.#turnId) this.#stopListening();
    }
  }

  /** Follows the reply that is being written. If this gateway has none, looks for one that another gateway is writing. */
  readonly #pollForReply = (): void => {
    const reply = this.#parts.live.ofSession(this.sessionId);
    // A reply may stay in memory for a moment after its end was published.
    if (!reply || reply.turnId === this.#endedTurn) {
      this.#stopSeeking ??= this.#parts.live.seek(this.sessionId, this.#pollForReply);
      return;
    }
    this.#listen(reply.turnId, reply.seq);
    readAtTickEnd(this.#sendText);
  };

  /** The text of one tick of the event loop is sent as one piece. */
  readonly #sendText = (): void => {
    const { live } = this.#parts;
    const reply = live.ofSession(this.sessionId);
    if (!reply || reply.turnId !== this.#turnId || this.ordinal === 0) return;
    this.#pushPieces(
      reply,
      (offset) => live.textSince(reply, offset),
      () => true,
      push,
    );
  };

  /** Pushes a reply to its sender, and to the subscribers for which `isWanted` returns true: to each the part that it does not have. */
  #pushPieces(
    reply: PiecesOf,
    textFrom: (offset: number) => string,
    isWanted: (reader: Reader) => boolean,
    push: PushPiece,
  ): void {
    for (const reader of this.readers) {
      const sender = reader.streamerOf(reply.turnId);
      if (!sender && !(reader.isSubscribed && isWanted(reader))) continue;
      const offset = reader.startOfPiece(reply);
      if (offset === undefined) continue;
      push(reader, sender, this.#frameOfPiece(reply, offset, textFrom));
    }
  }

  #frameOfPiece({ turnId, messageId, seq, length }: PiecesOf, offset: number, textFrom: (offset: number) => string) {
    const last = this.#piece;
    if (last && last.seq === seq && last.offset === offset && last.length === length) return last.frame;
    const frame = this.#parts.frames.delta(this, { turnId, messageId, seq, offset, text: textFrom(offset) });
    this.#piece = { seq, offset, length, frame };
    return frame;
  }

  /** Follows a reply, but only if a reader wants its pieces, because other gateways then send them to this one. */
  #listen(turnId: string, seq: number): void {
    if (![...this.readers].some((reader) => reader.isSubscribed || reader.streamerOf(turnId))) return;
    this.#replySeq = seq;
    if (this.#turnId === turnId) return;
    this.#stopReading();
    this.#turnId = turnId;
    this.#stopReading = this.#parts.live.read(this.sessionId, this.#sendText);
  }

  #stopListening(): void {
    this.#stopReading();
    this.#stopReading = () => {};
    this.#turnId = undefined;
    this.#replySeq = 0;
    this.#piece = undefined;
  }
}

type PushPiece = (reader: Reader, sender: Sender | undefined, frame: Frame) => void;

function push(reader: Reader, _sender: Sender | undefined, frame: Frame): void {
  reader.owner.sink.push(frame);
}

/** Pushes the last piece in the same way as the end of the turn: after the answer to the call, or immediately if the reader is subscribed. */
function pushLast(reader: Reader, sender: Sender | undefined, frame: Frame): void {
  if (sender && !reader.isSubscribed) sender.call.pushAfterAnswer(frame);
  else push(reader, sender, frame);
}
