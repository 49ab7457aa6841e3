import type { LiveReplies, LiveReply } from "#core/turns/live-replies.ts";
import type { Entry, Session, Store } from "#store/store.ts";
import type { PushFrames } from "./pushes.ts";
import { isTurnEnd, type Reader, Stream } from "./streams.ts";

export type SessionStreamParts = {
  store: Store;
  live: LiveReplies;
  frames: PushFrames;
  /** The streams that somebody reads, by their sessions. */
  sessions: Map<string, SessionStream>;
};

const NO_PIECE = { seq: 0, offset: 0, length: 0, frame: "" };

/** A session's stream, with the pieces of the reply that is being written. */
export class SessionStream extends Stream<Entry> {
  readonly sessionId: string;
  /** 0 as long as there is no such session, or it is not looked up. */
  ordinal = 0;
  agent: string | undefined = undefined;
  readonly #parts: SessionStreamParts;
  #isTextDue = false;
  /** The turn whose reply is listened to, and the `seq` of that reply. */
  #turnId: string | undefined = undefined;
  #replySeq = 0;
  /** The turn whose end was told last. */
  #endedTurn: string | undefined = undefined;
  #stopReading = (): void => {};
  #stopSeeking: (() => void) | undefined = undefined;
  #piece = NO_PIECE;

  constructor(parts: SessionStreamParts, sessionId: string) {
    super();
    this.#parts = parts;
    this.sessionId = sessionId;
    parts.sessions.set(sessionId, this);
  }

  override get writing(): string {
    return this.#turnId ?? "";
  }

  frameOf(entry: Entry): string {
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

  resetFrame(seq: number): string {
    const { frames } = this.#parts;
    return frames.reset(frames.sessionCursor(this, seq), this.sessionId);
  }

  setSession({ ordinal, agent }: Pick<Session, "ordinal" | "agent">): void {
    this.ordinal = ordinal;
    this.agent = agent;
  }

  close(): void {
    const { sessions } = this.#parts;
    if (sessions.get(this.sessionId) === this) sessions.delete(this.sessionId);
    this.#stopListening();
    this.#stopSeeking?.();
  }

  /** A reader that comes in the middle of a reply is sent all that was written so far. */
  override caughtUp(): void {
    this.#lookForReply();
    this.releaseIdle();
  }

  /** Readers that came by their agent stay only as long as there is something to tell. */
  releaseIdle(): void {
    if (this.#turnId !== undefined) return;
    for (const reader of this.readers) if (reader.isSubscribed && !reader.isNamed && !reader.isBehind) reader.release();
  }

  /** A sender wants the pieces of its turn's reply, which is `replySeq` if it has begun just now. */
  sendPieces(turnId: string, replySeq: number | undefined): void {
    if (replySeq === undefined) this.#lookForReply();
    else this.#listen(turnId, replySeq);
    // Without the session there is no cursor. If it cannot be read now, the end tells all that was written.
    if (this.ordinal === 0)
      this.#lookUp().then(
        () => this.#sendTextSoon(),
        () => {},
      );
  }

  protected override before(entry: Entry): void {
    if (entry.name !== "message.completed" || entry.turnId !== this.#turnId) return;
    // Pieces of this turn of the event loop were not sent yet: a client that joins pieces has the whole reply before its end.
    for (const reader of this.readers) {
      const sender = reader.streamerOf(entry.turnId);
      const hasPieces = reader.replySeq === this.#replySeq && reader.offset > 0;
      if (!sender && !(reader.isSubscribed && hasPieces)) continue;
      const reply = {
        turnId: entry.turnId,
        messageId: entry.messageId,
        seq: this.#replySeq,
        length: entry.text.length,
      };
      this.#pushPiece(
        reader,
        reply,
        (offset) => entry.text.slice(offset),
        // After the answer to the call, unless a subscription tells of the reply's end at once.
        (frame) =>
          sender && !reader.isSubscribed ? sender.call.pushAfterAnswer(frame) : reader.owner.sink.push(frame),
      );
    }
  }

  protected override after(entry: Entry): void {
    if (entry.name === "message.created") {
      if (entry.role === "assistant") this.#listen(entry.turnId, entry.seq);
    } else if (entry.name === "message.completed" || isTurnEnd(entry)) {
      this.#endedTurn = entry.turnId;
      if (entry.turnId === this.#turnId) this.#stopListening();
    }
  }

  /** Listens to the reply that is being written, or to the one that another gateway turns out to be writing already. */
  readonly #lookForReply = (): void => {
    const reply = this.#parts.live.ofSession(this.sessionId);
    // A reply may be held for a moment longer than its end is told.
    if (!reply || reply.turnId === this.#endedTurn) {
      this.#stopSeeking ??= this.#parts.live.seek(this.sessionId, this.#lookForReply);
      return;
    }
    this.#listen(reply.turnId, reply.seq);
    this.#sendTextSoon();
  };

  /** The pieces of one turn of the event loop are sent as one. */
  readonly #sendTextSoon = (): void => {
    if (this.#isTextDue) return;
    this.#isTextDue = true;
    setImmediate(() => {
      this.#isTextDue = false;
      this.#sendText();
    });
  };

  #sendText(): void {
    const { live } = this.#parts;
    const reply = live.ofSession(this.sessionId);
    if (!reply || reply.turnId !== this.#turnId || this.ordinal === 0) return;
    for (const reader of this.readers)
      if (reader.isSubscribed || reader.streamerOf(reply.turnId))
        this.#pushPiece(
          reader,
          reply,
          (offset) => live.textSince(reply, offset),
          (frame) => reader.owner.sink.push(frame),
        );
  }

  /** Pushes the part of a reply that the reader does not have. Readers that are at the same place share the frame. */
  #pushPiece(
    reader: Reader,
    reply: Pick<LiveReply, "turnId" | "messageId" | "seq" | "length">,
    textFrom: (offset: number) => string,
    push: (frame: string) => void,
  ): void {
    const offset = reader.startOfPiece(reply);
    if (offset === undefined) return;
    const { turnId, messageId, seq, length } = reply;
    const last = this.#piece;
    if (last.seq !== seq || last.offset !== offset || last.length !== length) {
      const delta = { turnId, messageId, seq, offset, text: textFrom(offset) };
      this.#piece = { seq, offset, length, frame: this.#parts.frames.delta(this, delta) };
    }
    push(this.#piece.frame);
  }

  /** Listens only if somebody wants the pieces: other gateways send the pieces that are listened to here. */
  #listen(turnId: string, seq: number): void {
    if (![...this.readers].some((reader) => reader.isSubscribed || reader.streamerOf(turnId))) return;
    this.#replySeq = seq;
    if (this.#turnId === turnId) return;
    this.#stopReading();
    this.#turnId = turnId;
    this.#stopReading = this.#parts.live.read(this.sessionId, this.#sendTextSoon);
  }

  #stopListening(): void {
    this.#stopReading();
    this.#stopReading = () => {};
    this.#turnId = undefined;
    this.#replySeq = 0;
    this.#piece = NO_PIECE;
  }
}
