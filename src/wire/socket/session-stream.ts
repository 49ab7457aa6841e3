import type { LiveReplies, LiveReply } from "#core/turns/live-replies.ts";
import { readAtTickEnd } from "#kit/tick-end.ts";
import type { Entry, Session, Store } from "#store/store.ts";
import type { Frame } from "./frame.ts";
import type { PushFrames } from "./pushes.ts";
import { isTurnEnd, type Reader, type Sender, Stream } from "./streams.ts";

export type SessionStreamParts = {
  store: Store;
  live: LiveReplies;
  frames: PushFrames;
  /** The streams that somebody reads, by their sessions. */
  sessions: Map<string, SessionStream>;
};

/** A reply that is being written, or its whole text. */
type PiecesOf = Pick<LiveReply, "turnId" | "messageId" | "seq" | "length">;
/** The piece that was sent last. Readers at the same place share its frame. */
type Piece = { seq: number; offset: number; length: number; frame: Frame };

/** A session's stream, with the pieces of the reply that is being written. */
export class SessionStream extends Stream<Entry> {
  readonly sessionId: string;
  /** 0 as long as there is no such session, or it is not looked up. */
  ordinal = 0;
  agent: string | undefined = undefined;
  readonly #parts: SessionStreamParts;
  /** The turn whose reply is listened to, and the `seq` of that reply. */
  #turnId: string | undefined = undefined;
  #replySeq = 0;
  /** The turn whose end was told last. */
  #endedTurn: string | undefined = undefined;
  #stopReading = (): void => {};
  #stopSeeking: (() => void) | undefined = undefined;
  #piece: Piece | undefined = undefined;

  constructor(parts: SessionStreamParts, sessionId: string) {
    super();
    this.#parts = parts;
    this.sessionId = sessionId;
    parts.sessions.set(sessionId, this);
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

  close(): void {
    const { sessions } = this.#parts;
    if (sessions.get(this.sessionId) === this) sessions.delete(this.sessionId);
    this.#stopListening();
    this.#stopSeeking?.();
  }

  /** A reader that comes in the middle of a reply is sent all that was written so far. */
  override caughtUp(): void {
    this.#pollForReply();
    this.releaseIdle();
  }

  /** Readers that came by their agent stay only as long as there is something to tell. */
  releaseIdle(): void {
    if (this.#turnId !== undefined) return;
    for (const reader of this.readers) if (reader.isSubscribed && !reader.isNamed && !reader.isBehind) reader.release();
  }

  /** A sender wants the pieces of its turn's reply, which is `replySeq` if it has begun just now. */
  sendPieces(turnId: string, replySeq: number | undefined): void {
    if (replySeq === undefined) this.#pollForReply();
    else this.#listen(turnId, replySeq);
    // Without the session there is no cursor. If it cannot be read now, the end tells all that was written.
    if (this.ordinal === 0)
      this.#lookUp().then(
        () => readAtTickEnd(this.#sendText),
        () => {},
      );
  }

  protected override before(entry: Entry): void {
    if (entry.name !== "message.completed" || entry.turnId !== this.#turnId) return;
    // Pieces of this tick were not sent yet: a client that joins pieces has all of the reply before its end.
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

  /** Listens to the reply that is being written, or to the one that another gateway turns out to be writing already. */
  readonly #pollForReply = (): void => {
    const reply = this.#parts.live.ofSession(this.sessionId);
    // A reply may be held for a moment longer than its end is told.
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

  /** Pushes the part of a reply that they do not have to its sender, and to subscribers that want it. */
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

  /** Listens only if somebody wants the pieces: other gateways send the pieces that are listened to here. */
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

/** The end of the turn follows the answer to its call, unless a subscription pushes it at once; so does the last piece. */
function pushLast(reader: Reader, sender: Sender | undefined, frame: Frame): void {
  if (sender && !reader.isSubscribed) sender.call.pushAfterAnswer(frame);
  else push(reader, sender, frame);
}
