import type { GatewayStream as GatewayEntries } from "#core/gateway-stream.ts";
import type { LiveReplies } from "#core/turns/live-replies.ts";
import type { GatewayEntry, Store } from "#store/store.ts";
import type { PushFrames } from "./pushes.ts";

/** The target of pushes: one connection, as subscriptions see it. */
export type PushSink = {
  readonly isOpen: boolean;
  /** Too much is unsent, so news have to wait in the store. */
  readonly isFull: boolean;
  /** News that waited in the store may be sent. */
  readonly hasRoom: boolean;
  /** Its subscriptions; undefined when it has none. */
  readonly subscriber: SinkSubscriber | undefined;
  push(frame: string): void;
  /** Something was kept back: `subscriber.pump` is to be called when there is room again. */
  hold(): void;
  /** Ends a connection that has no room for a push that cannot wait. */
  cut(): void;
};

/** The subscriptions of one connection, as streams see them. */
export type SinkSubscriber = {
  readonly readers: ReadonlyMap<string, StreamReader>;
  /** The session's entries come to it by a subscription. */
  covers(sessionId: string, agent: string | undefined): boolean;
  /** Has a reader that fell behind read on as soon as there is room. */
  fallBehind(reader: StreamReader): void;
  /** Has this called as soon as there is room. */
  owe(push: () => Promise<void>): void;
};

type Sequenced = { readonly seq: number };

/** The parts that streams share. */
export type StreamParts = {
  store: Store;
  gatewayStream: Pick<GatewayEntries, "read" | "follow">;
  live: LiveReplies;
  frames: PushFrames;
  subscriberOf(sink: PushSink): SinkSubscriber;
  /** Has `flush` called before this turn of the event loop ends its writes. */
  onText(flush: () => void): void;
  /** A reader of a session is up to date again. */
  onCaughtUp(stream: Stream): void;
  /** Nobody reads it any more. */
  onUnread(stream: Stream): void;
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
  caughtUp(): void {}

  get isUnread(): boolean {
    return this.readers.size === 0;
  }

  /** Tells new entries to the readers that are up to date; the others will read them. */
  publish(entries: readonly Item[]): void {
    const first = (entries[0] as Item).seq;
    const { seq: last } = entries.at(-1) as Item;
    for (const reader of this.readers) {
      reader.newest = last;
      if (reader.isBehind || (reader.sent === first - 1 && !reader.sink.isFull)) continue;
      if ((reader.sent as number) >= last) continue;
      reader.isBehind = true;
      this.parts.subscriberOf(reader.sink).fallBehind(reader);
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

/** The place of one connection in the reply that is being written. */
export abstract class PieceReader {
  readonly sink: PushSink;
  /** The length of the reply `replySeq` that was sent or left out. */
  offset = 0;
  replySeq = 0;

  constructor(sink: PushSink) {
    this.sink = sink;
  }

  /** The offset of the piece of the reply `seq` that goes now, up to `length`; undefined where there is none for this reader. */
  startOfPiece(seq: number, length: number): number | undefined {
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

/**
 * One connection's place in one stream: the last entry that was sent to it. While it is up to date it takes entries as they are
 * told. One that is behind reads them from the store, so that it costs the same however far behind it is.
 */
export class StreamReader<Of extends Stream = Stream> extends PieceReader {
  readonly stream: Of;
  isBehind = true;
  /** Undefined until its beginning is known. */
  sent: number | undefined = undefined;
  /** The newest entry that was told while it was behind. */
  newest = 0;
  /** The stream is not the one that its cursor was of: to be told first. */
  isReset = false;
  isOver = false;
  #promised: { seq: number; broken: () => void }[] | undefined = undefined;

  constructor(sink: PushSink, stream: Of) {
    super(sink);
    this.stream = stream;
  }

  /** Goes on behind `seq` and reads the entries that exist. With `reset` the reader is told that the stream is another now. */
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

  override startOfPiece(seq: number, length: number): number | undefined {
    return this.isBehind || (this.sent ?? 0) < seq ? undefined : super.startOfPiece(seq, length);
  }
}
