import type { LiveReply } from "#core/turns/live-replies.ts";
import type { Entry, Session, Store, Turn } from "#store/store.ts";
import type { PushFrames } from "./pushes.ts";
import { PieceReader, type PushSink, Stream, type StreamParts } from "./streams.ts";

export type FollowOptions = { stream: boolean; replySeq?: number | undefined };

/** The call that started a turn. Pushes through it come after its answer. */
export type PendingCall = { pushAfterAnswer(frame: string): void };

/** A sender that waits for the end of its turn, and with `stream` for the pieces of the reply until then. */
class Sender extends PieceReader {
  readonly turn: Turn;
  readonly stream: boolean;
  readonly call: PendingCall;

  constructor(sink: PushSink, call: PendingCall, turn: Turn, stream: boolean) {
    super(sink);
    this.call = call;
    this.turn = turn;
    this.stream = stream;
  }

  /** A reply is begun: another one, when the turn is tried again. */
  begin(seq: number, offset = 0): void {
    this.replySeq = seq;
    this.offset = offset;
  }
}

const NO_PIECE = { seq: 0, offset: 0, length: 0, frame: "" };
const PAGE = 32;

/** A session's stream, with the pieces of the reply that is being written, for its readers and for the senders of its turns. */
export class SessionStream extends Stream<Entry> {
  readonly sessionId: string;
  /** 0 as long as there is no such session, or it is not looked up. */
  ordinal = 0;
  agent: string | undefined = undefined;
  readonly #senders = new Set<Sender>();
  #isTextDue = false;
  #turnId: string | undefined = undefined;
  /** The turn whose end was told last. */
  #endedTurn: string | undefined = undefined;
  #stopReading = (): void => {};
  #stopSeeking: (() => void) | undefined = undefined;
  /** The `seq` of the reply that is listened to. */
  #replySeq = 0;
  #piece = NO_PIECE;

  constructor(parts: StreamParts, sessionId: string) {
    super(parts);
    this.sessionId = sessionId;
  }

  override get isUnread(): boolean {
    return super.isUnread && this.#senders.size === 0;
  }

  /** A reply is being written, and its pieces are listened to. */
  get isWriting(): boolean {
    return this.#turnId !== undefined;
  }

  frameOf(entry: Entry): string {
    return this.parts.frames.entry(this, entry);
  }

  read(after: number, limit: number): Promise<readonly Entry[]> {
    return this.parts.store.readEntries(this.sessionId, { after, limit });
  }

  resetFrame(seq: number): string {
    const { frames } = this.parts;
    return frames.reset(frames.sessionCursor(this, seq), this.sessionId);
  }

  /** There is such a session. */
  setSession({ ordinal, agent }: Pick<Session, "ordinal" | "agent">): void {
    this.ordinal = ordinal;
    this.agent = agent;
  }

  close(): void {
    this.#stopListening();
    this.#stopSeeking?.();
  }

  /** A reader that comes in the middle of a reply is sent all that was written so far. */
  override caughtUp(): void {
    this.#lookForReply();
    this.parts.onCaughtUp(this);
  }

  /** Pushes the end of a turn to its sender, and with `stream` the pieces of the reply until then. */
  follow(sink: PushSink, call: PendingCall, turn: Turn, { stream, replySeq }: FollowOptions): void {
    // One that repeats its call on the same connection gets the pieces once.
    const sender = new Sender(sink, call, turn, stream && !this.#isSender(sink, turn.turnId));
    this.#senders.add(sender);
    this.agent ??= turn.agent;
    if (sender.stream) this.#beginPieces(sender, replySeq);
    // Another gateway may have ended it before it was followed here.
    if (this.parts.store.shared && replySeq === undefined) void this.#checkEnded(sender);
  }

  /** The session is gone, which ends its turns. Senders that are `told` by a subscription need no other word. */
  delete(frame: string, told: ReadonlySet<PushSink>): void {
    for (const { sink, call } of this.#senders) if (!told.has(sink)) call.pushAfterAnswer(frame);
    this.#senders.clear();
    if (this.isUnread) this.parts.onUnread(this);
  }

  protected override before(entry: Entry): void {
    for (const sender of this.#senders) if (sender.turn.turnId === entry.turnId) this.#tellSender(sender, entry);
    if (entry.name !== "message.completed" || entry.turnId !== this.#turnId) return;
    // Pieces of this turn of the event loop were not sent yet: a client that joins pieces has the whole reply before its end.
    for (const reader of this.readers) {
      const hasPieces = reader.replySeq === this.#replySeq && reader.offset > 0;
      if (hasPieces && !this.#isSender(reader.sink, entry.turnId))
        this.#pushRest(reader, entry, (frame) => reader.sink.push(frame));
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

  #tellSender(sender: Sender, entry: Entry): void {
    if (isTurnEnd(entry)) this.#endSender(sender, entry.seq, () => this.frameOf(entry));
    else if (entry.name === "message.created" && entry.role === "assistant") sender.begin(entry.seq);
    else if (entry.name === "message.completed" && sender.stream) {
      // At once if a subscription tells of the reply's end at once.
      const isCovered = this.#isCovered(sender);
      this.#pushRest(sender, entry, (frame) =>
        isCovered ? sender.sink.push(frame) : sender.call.pushAfterAnswer(frame),
      );
    }
  }

  #endSender(sender: Sender, seq: number, frame: () => string): void {
    const { sink, call } = sender;
    this.#senders.delete(sender);
    const owe = () => this.#oweEnd(sender, seq - 1);
    if (this.#isCovered(sender)) sink.subscriber?.readers.get(this.sessionId)?.promise(seq, owe);
    else if (sink.isFull) owe();
    else call.pushAfterAnswer(frame());
  }

  #isCovered({ sink }: Sender): boolean {
    return sink.subscriber?.covers(this.sessionId, this.agent) === true;
  }

  #oweEnd({ sink, turn }: Pick<Sender, "sink" | "turn">, after: number): void {
    const { store, frames, subscriberOf } = this.parts;
    subscriberOf(sink).owe(() => pushStoredEnd(store, frames, sink, turn, after));
  }

  /** The connection gets the pieces of the turn's reply as its sender: they are not sent again. */
  #isSender(sink: PushSink, turnId: string): boolean {
    for (const one of this.#senders) if (one.stream && one.sink === sink && one.turn.turnId === turnId) return true;
    return false;
  }

  #beginPieces(sender: Sender, replySeq: number | undefined): void {
    const { live, store } = this.parts;
    const { turnId } = sender.turn;
    const reply = live.get(turnId);
    const reader = sender.sink.subscriber?.readers.get(this.sessionId);
    // A connection that was told by its subscription until now goes on from there.
    if (reply) sender.begin(reply.seq, reader?.replySeq === reply.seq ? reader.offset : 0);
    else if (replySeq !== undefined) sender.begin(replySeq);
    if (replySeq === undefined) this.#lookForReply();
    else this.#listen(turnId, replySeq);
    if (this.ordinal !== 0) return;
    store.getSession(this.sessionId).then(
      (session) => {
        if (session) this.setSession(session);
        this.#sendTextSoon();
      },
      () => {}, // The end tells all that was said.
    );
  }

  async #checkEnded(sender: Sender): Promise<void> {
    const { turnId, seq } = sender.turn;
    // A store that fails changes nothing: the end is told when it comes.
    const turn = await this.parts.store.getTurn(turnId).catch(() => undefined);
    if (!turn || turn.status === "queued" || turn.status === "running" || !this.#senders.delete(sender)) return;
    if (!this.#isCovered(sender)) this.#oweEnd(sender, seq - 1);
    if (this.isUnread) this.parts.onUnread(this);
  }

  /** Listens to the reply that is being written, or to the one that another gateway turns out to be writing already. */
  readonly #lookForReply = (): void => {
    const reply = this.parts.live.ofSession(this.sessionId);
    // A reply may be held for a moment longer than its end is told.
    if (!reply || reply.turnId === this.#endedTurn) {
      this.#stopSeeking ??= this.parts.live.seek(this.sessionId, this.#lookForReply);
      return;
    }
    this.#listen(reply.turnId, reply.seq);
    this.#sendTextSoon();
  };

  #sendTextSoon(): void {
    if (this.#isTextDue) return;
    this.#isTextDue = true;
    this.parts.onText(() => this.#sendText());
  }

  /** Sends the text that was written since the last call. */
  #sendText(): void {
    this.#isTextDue = false;
    const reply = this.#turnId === undefined ? undefined : this.parts.live.get(this.#turnId);
    if (!reply || this.ordinal === 0) return;
    for (const reader of this.readers) if (!this.#isSender(reader.sink, reply.turnId)) this.#pushText(reader, reply);
    for (const sender of this.#senders)
      if (sender.stream && sender.turn.turnId === reply.turnId) this.#pushText(sender, reply);
  }

  #pushText(reader: PieceReader, reply: LiveReply): void {
    const offset = reader.startOfPiece(reply.seq, reply.length);
    if (offset === undefined) return;
    reader.sink.push(this.#frameOfPiece(reply, offset, () => this.parts.live.textSince(reply, offset)));
  }

  /** Sends the rest of a reply that is whole. */
  #pushRest(
    reader: PieceReader,
    { turnId, messageId, text }: Extract<Entry, { name: "message.completed" }>,
    push: (frame: string) => void,
  ): void {
    const { replySeq: seq } = reader;
    const { length } = text;
    const offset = seq === 0 ? undefined : reader.startOfPiece(seq, length);
    if (offset !== undefined)
      push(this.#frameOfPiece({ turnId, messageId, seq, length }, offset, () => text.slice(offset)));
  }

  /** Readers that are at the same place share the frame. */
  #frameOfPiece(reply: Pick<LiveReply, "turnId" | "messageId" | "seq" | "length">, offset: number, text: () => string) {
    const { seq, length, turnId, messageId } = reply;
    const last = this.#piece;
    if (last.seq !== seq || last.offset !== offset || last.length !== length) {
      const delta = { turnId, messageId, seq, offset, text: text() };
      this.#piece = { seq, offset, length, frame: this.parts.frames.delta(this, delta) };
    }
    return this.#piece.frame;
  }

  /** Listens only if somebody wants the pieces: other gateways send the pieces that are listened to here. */
  #listen(turnId: string, seq: number): void {
    if (super.isUnread && ![...this.#senders].some(({ stream }) => stream)) return;
    this.#replySeq = seq;
    if (this.#turnId === turnId) return;
    this.#stopReading();
    this.#turnId = turnId;
    this.#stopReading = this.parts.live.read({ turnId, sessionId: this.sessionId }, () => this.#sendTextSoon());
  }

  #stopListening(): void {
    this.#stopReading();
    this.#stopReading = () => {};
    this.#turnId = undefined;
    this.#replySeq = 0;
    this.#piece = NO_PIECE;
  }
}

export const isTurnEnd = ({ name }: Entry): boolean =>
  name === "turn.completed" || name === "turn.failed" || name === "turn.cancelled";

/** Pushes the end of a turn as the store has it; nothing when there is none any more. */
export const pushStoredEnd = async (
  store: Store,
  frames: PushFrames,
  sink: PushSink,
  { turnId, sessionId }: Turn,
  after: number,
): Promise<void> => {
  const session = await store.getSession(sessionId);
  for (let from = after; session; ) {
    const page = await store.readEntries(sessionId, { after: from, limit: PAGE });
    const end = page.find((entry) => entry.turnId === turnId && isTurnEnd(entry));
    if (end) return sink.push(frames.entry(session, end));
    if (page.length < PAGE) return;
    from = page.at(-1)?.seq as number;
  }
};
