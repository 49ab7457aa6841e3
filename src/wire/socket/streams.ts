import type { GatewayStream as GatewayEntries } from "#core/gateway-stream.ts";
import type { LiveReplies } from "#core/turns/live-replies.ts";
import type { Entry, GatewayEntry, Store } from "#store/store.ts";
import type { PushFrames } from "./pushes.ts";

/** Where pushes go: one connection, as subscriptions see it. */
export type PushSink = {
  readonly isOpen: boolean;
  /** So much is unsent that news have to wait in the store. */
  readonly isFull: boolean;
  /** News that waited in the store may be sent. */
  readonly hasRoom: boolean;
  push(frame: string): void;
  /** Something was kept back: `subscriber.pump` is to be called when there is room again. */
  hold(): void;
  /** Ends a connection that cannot be told what cannot wait. */
  cut(): void;
};

type Sequenced = { readonly seq: number };

/** The parts that streams share. */
export type StreamParts = {
  store: Store;
  gatewayStream: Pick<GatewayEntries, "read" | "follow">;
  live: LiveReplies;
  frames: PushFrames;
  /** The reader's connection gets the pieces of this turn's reply as its sender: they are not sent again. */
  isSender(reader: StreamReader, stream: SessionStream, turnId: string): boolean;
  /** Has `flushText` called before this turn of the event loop ends its writes. */
  onText(stream: SessionStream): void;
  /** Has a reader that fell behind read on as soon as there is room. */
  onBehind(reader: StreamReader): void;
  /** A reader of a session is up to date again. */
  onCaughtUp(stream: SessionStream): void;
};

/** A stream that somebody reads: entries in the order of their `seq`, each made a frame once for all readers. */
export abstract class Stream<Item extends Sequenced = Sequenced> {
  readonly readers = new Set<StreamReader>();
  protected readonly parts: StreamParts;

  constructor(parts: StreamParts) {
    this.parts = parts;
  }

  abstract frameOf(entry: Item): string;
  /** Entries after `after`. */
  abstract read(after: number, limit: number): Promise<readonly Item[]>;
  abstract resetFrame(seq: number): string;
  /** Nobody reads it any more. */
  abstract close(): void;
  /** A reader has come to the stream's present end. */
  caughtUp(_reader: StreamReader): void {}

  /** Tells new entries to those who are up to date; the others will read them. */
  publish(entries: readonly Item[]): void {
    const first = (entries[0] as Item).seq;
    const { seq: last } = entries.at(-1) as Item;
    for (const reader of this.readers) {
      reader.newest = last;
      if (reader.isBehind || (reader.sent === first - 1 && !reader.sink.isFull)) continue;
      if ((reader.sent as number) >= last) continue;
      reader.isBehind = true;
      this.parts.onBehind(reader);
    }
    for (const entry of entries) {
      this.before(entry);
      let frame = "";
      for (const reader of this.readers) {
        if (reader.isBehind || (reader.sent as number) >= entry.seq) continue;
        if (frame === "") frame = this.frameOf(entry);
        reader.push(frame, entry.seq);
      }
      this.after(entry);
    }
  }

  protected before(_entry: Item): void {}
  protected after(_entry: Item): void {}
}

/** The gateway's own stream. It is followed as long as somebody reads it. */
export class GatewayStream extends Stream<GatewayEntry> {
  #unfollow: (() => void) | undefined = undefined;

  open(): void {
    this.#unfollow ??= this.parts.gatewayStream.follow((entries) => this.publish(entries));
  }

  close(): void {
    this.#unfollow?.();
    this.#unfollow = undefined;
  }

  frameOf(entry: GatewayEntry): string {
    return this.parts.frames.gateway(entry);
  }

  read(after: number, limit: number): Promise<readonly GatewayEntry[]> {
    return this.parts.gatewayStream.read(after, limit);
  }

  resetFrame(seq: number): string {
    const { frames } = this.parts;
    return frames.reset(frames.gatewayCursor(seq), undefined);
  }
}

/** A session's stream, with the pieces of the reply that is being written. */
export class SessionStream extends Stream<Entry> {
  readonly sessionId: string;
  /** 0 as long as there is no such session. */
  ordinal = 0;
  agent: string | undefined = undefined;
  isTextDue = false;
  #turnId: string | undefined = undefined;
  /** The turn whose end was told last. */
  #endedTurn: string | undefined = undefined;
  #stopReading = (): void => {};
  #stopSeeking: (() => void) | undefined = undefined;
  #piece = { seq: 0, offset: 0, length: 0, frame: "" };

  constructor(parts: StreamParts, sessionId: string) {
    super(parts);
    this.sessionId = sessionId;
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

  /** A reply is being written, and its pieces are listened to. */
  get isWriting(): boolean {
    return this.#turnId !== undefined;
  }

  /** All that was written so far goes to a reader that comes in the middle of a reply. */
  override caughtUp(reader: StreamReader): void {
    const reply = this.parts.live.ofSession(this.sessionId);
    // A reply may be held for a moment longer than its end is told.
    if (reply && reply.turnId !== this.#endedTurn) {
      this.#listen(reply.turnId);
      this.#pushText(reader, reply);
    } else this.#stopSeeking ??= this.parts.live.seek(this.sessionId, this.#onFound);
    this.parts.onCaughtUp(this);
  }

  /** A reply has come up that another gateway was writing already. */
  readonly #onFound = (): void => {
    const reply = this.parts.live.ofSession(this.sessionId);
    if (!reply) return;
    this.#listen(reply.turnId);
    for (const reader of this.readers) if (!reader.isBehind) this.#pushText(reader, reply);
  };

  /** Sends what was written since it was called last. */
  flushText(): void {
    this.isTextDue = false;
    const reply = this.#turnId === undefined ? undefined : this.parts.live.get(this.#turnId);
    if (reply) for (const reader of this.readers) this.#pushText(reader, reply);
  }

  /** There is such a session. */
  setSession({ ordinal, agent }: { ordinal: number; agent: string }): void {
    this.ordinal = ordinal;
    this.agent = agent;
  }

  close(): void {
    this.#stopListening();
    this.#stopSeeking?.();
  }

  protected override before(entry: Entry): void {
    if (entry.name !== "message.completed") return;
    // Pieces of this turn of the event loop were not sent yet: the reply of who puts pieces together shall not end before its end.
    const { text, turnId, messageId } = entry;
    for (const reader of this.readers) {
      if (reader.offset === 0 || reader.replySeq === 0) continue;
      const { replySeq: seq } = reader;
      const offset = reader.startOfPiece(seq, text.length);
      if (offset !== undefined)
        this.#push(reader, { turnId, messageId, seq, length: text.length }, offset, () => text.slice(offset));
    }
  }

  protected override after(entry: Entry): void {
    if (entry.name === "message.created") {
      if (entry.role === "assistant") this.#listen(entry.turnId);
    } else if (isEnd(entry)) {
      this.#endedTurn = entry.turnId;
      if (entry.turnId === this.#turnId) this.#stopListening();
    }
  }

  #pushText(reader: StreamReader, reply: NonNullable<ReturnType<LiveReplies["get"]>>): void {
    if (this.parts.isSender(reader, this, reply.turnId)) return;
    const offset = reader.startOfPiece(reply.seq, reply.length);
    if (offset !== undefined) this.#push(reader, reply, offset, () => this.parts.live.textSince(reply, offset));
  }

  #push(
    reader: StreamReader,
    reply: { turnId: string; messageId: string; seq: number; length: number },
    offset: number,
    text: () => string,
  ): void {
    const { seq, length, turnId, messageId } = reply;
    const last = this.#piece;
    if (last.seq !== seq || last.offset !== offset || last.length !== length) {
      const delta = { turnId, messageId, seq, offset, text: text() };
      this.#piece = { seq, offset, length, frame: this.parts.frames.delta(this, delta) };
    }
    reader.sink.push(this.#piece.frame);
  }

  #listen(turnId: string): void {
    if (this.#turnId === turnId) return;
    this.#stopReading();
    this.#turnId = turnId;
    this.#stopReading = this.parts.live.read({ turnId, sessionId: this.sessionId }, () => {
      if (this.isTextDue) return;
      this.isTextDue = true;
      this.parts.onText(this);
    });
  }

  #stopListening(): void {
    this.#stopReading();
    this.#stopReading = () => {};
    this.#turnId = undefined;
    this.#piece = { seq: 0, offset: 0, length: 0, frame: "" };
  }
}

const isEnd = (entry: Entry): entry is Exclude<Entry, { name: "session.compacted" }> =>
  entry.name === "message.completed" || isTurnEnd(entry);

export const isTurnEnd = ({ name }: Entry): boolean =>
  name === "turn.completed" || name === "turn.failed" || name === "turn.cancelled";

/**
 * One connection's place in one stream: what it has sent up to. It takes entries as they are told while it is up to date; one that is
 * behind reads them from the store, so that it costs the same however far behind it is.
 */
export class StreamReader<Of extends Stream = Stream> {
  readonly sink: PushSink;
  readonly stream: Of;
  isBehind = true;
  /** Undefined until it is known where it begins. */
  sent: number | undefined = undefined;
  /** The newest entry that was told while it was behind. */
  newest = 0;
  /** The stream is not the one that its cursor was of: to be told first. */
  isReset = false;
  isOver = false;
  /** The length of the reply `replySeq` that was sent or left out. */
  offset = 0;
  replySeq = 0;
  #promised: { seq: number; broken: () => void }[] | undefined = undefined;

  constructor(sink: PushSink, stream: Of) {
    this.sink = sink;
    this.stream = stream;
  }

  /** Goes on behind `seq`; what is there already is read. With `reset` the reader is told that it is another stream now. */
  start(seq: number, reset: boolean): void {
    this.sent = seq;
    this.isReset = reset;
    this.isBehind = true;
    this.offset = 0;
    this.replySeq = 0;
  }

  /** Takes an entry that comes next. */
  push(frame: string, seq: number): void {
    this.sink.push(frame);
    this.sent = seq;
  }

  /** It is to send the entry `seq`; `broken` is called if it leaves before. */
  promise(seq: number, broken: () => void): void {
    this.#promised = [...this.#open(), { seq, broken }];
  }

  leave(): void {
    this.isOver = true;
    for (const { broken } of this.#open()) broken();
  }

  #open() {
    return this.#promised?.filter(({ seq }) => seq > (this.sent ?? 0)) ?? [];
  }

  /** The offset of the piece of the reply `seq` that goes now, up to `length`; undefined where there is none for this reader. */
  startOfPiece(seq: number, length: number): number | undefined {
    if (this.isBehind || (this.sent ?? 0) < seq) return undefined;
    if (this.replySeq !== seq) {
      this.replySeq = seq;
      this.offset = 0;
    }
    const { offset } = this;
    if (offset >= length) return undefined;
    this.offset = length;
    return this.sink.isFull ? undefined : offset;
  }
}
