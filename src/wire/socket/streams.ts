import type { GatewayStream as GatewayEntries } from "#core/gateway-stream.ts";
import type { GatewayEntry } from "#store/store.ts";
import type { Frame } from "./frame.ts";
import type { PushFrames } from "./pushes.ts";

/** The target of pushes: one connection, as its subscriptions see it. */
export type PushSink = {
  readonly isOpen: boolean;
  /** Too much is unsent, so news have to wait in the store. */
  readonly isFull: boolean;
  /** News that waited in the store may be sent. */
  readonly hasRoom: boolean;
  push(frame: Frame): void;
  /** Something was kept back: its subscriber is to be told when there is room again. */
  hold(): void;
  /** Ends a connection that has no room for a push that cannot wait. */
  cut(): void;
};

/** The owner of the readers of one connection. */
export type ReaderOwner = {
  readonly sink: PushSink;
  /** Has the reader read on from the store as soon as there is room. */
  fallBehind(reader: Reader): void;
  drop(reader: Reader): void;
};

/** The call that started a turn. Pushes through it come after its answer. */
export type PendingCall = { pushAfterAnswer(frame: Frame): void };

/** A sender that waits for the end of its turn, and with `stream` for the pieces of the reply until then. */
export type Sender = { turnId: string; stream: boolean; call: PendingCall };

type StreamEntry = { readonly seq: number; readonly name: string; readonly turnId?: string };

/** A stream that somebody reads: entries in the order of their `seq`, each made a frame once for all readers. */
export abstract class Stream<Item extends StreamEntry = StreamEntry> {
  readonly readers = new Set<Reader>();

  abstract frameOf(entry: Item): Frame;
  /** Entries after `after`. */
  abstract read(after: number, limit: number): Promise<readonly Item[]>;
  abstract resetFrame(seq: number): Frame;
  /** Nobody reads it any more. */
  abstract close(): void;
  /** A reader has come to the stream's present end. */
  caughtUp(): void {}
  /** The turn whose reply is being written. */
  get writing(): string {
    return "";
  }

  leave(reader: Reader): void {
    if (this.readers.delete(reader) && this.readers.size === 0) this.close();
  }

  publish(entries: readonly Item[]): void {
    for (const entry of entries) {
      this.before(entry);
      let made: Frame | undefined;
      const frame = () => (made ??= this.frameOf(entry));
      for (const reader of this.readers) reader.tell(entry, frame);
      this.after(entry);
    }
  }

  protected before(_entry: Item): void {}
  protected after(_entry: Item): void {}
}

/** The gateway's own stream. It is followed as long as somebody reads it. */
export class GatewayStream extends Stream<GatewayEntry> {
  readonly #entries: Pick<GatewayEntries, "read" | "follow">;
  readonly #frames: PushFrames;
  #unfollow: (() => void) | undefined = undefined;

  constructor(entries: Pick<GatewayEntries, "read" | "follow">, frames: PushFrames) {
    super();
    this.#entries = entries;
    this.#frames = frames;
  }

  open(): void {
    this.#unfollow ??= this.#entries.follow((entries) => this.publish(entries));
  }

  close(): void {
    this.#unfollow?.();
    this.#unfollow = undefined;
  }

  frameOf(entry: GatewayEntry): Frame {
    return this.#frames.gateway(entry);
  }

  read(after: number, limit: number): Promise<readonly GatewayEntry[]> {
    return this.#entries.read(after, limit);
  }

  resetFrame(seq: number): Frame {
    return this.#frames.reset(this.#frames.gatewayCursor(seq), undefined);
  }
}

/**
 * One connection's place in one stream. A subscription gets every entry; a sender of a message gets the end of its turn, which a subscription
 * to the same session does not repeat. A reader that is up to date takes entries as they are told. One that is behind reads them from the
 * store, so that it costs the same however far behind it is.
 */
export class Reader<Of extends Stream = Stream> {
  readonly owner: ReaderOwner;
  readonly stream: Of;
  isSubscribed = false;
  /** Its session was asked for by id, and not only by its agent. */
  isNamed = false;
  /** A subscription to it is being looked up. */
  isHeld = false;
  senders: readonly Sender[] = [];
  /** The last entry that was sent or left out. */
  sent = 0;
  isBehind = false;
  /** The newest entry that was told. */
  newest = 0;
  /** The stream is not the one that its cursor was of: to be told first. */
  isReset = false;
  isOver = false;
  /** The reply that is being written, by the `seq` of its first entry, and the length of it that was sent or left out. */
  replySeq = 0;
  offset = 0;

  constructor(owner: ReaderOwner, stream: Of) {
    this.owner = owner;
    this.stream = stream;
    stream.readers.add(this);
  }

  /** Ends the subscription. The reader stays as long as a sender needs it. */
  release(): void {
    this.isSubscribed = false;
    this.isReset = false;
    this.dropIdle();
  }

  dropIdle(): void {
    if (!this.isSubscribed && !this.isHeld && this.senders.length === 0) this.owner.drop(this);
  }

  /** Subscribes to what comes behind `seq`, and reads the entries that exist. With `isReset` it is told that the stream is another now. */
  start(seq: number, isReset: boolean): void {
    this.isSubscribed = true;
    this.sent = seq;
    this.isReset = isReset;
    // Pieces that a sender asked for come once.
    if (!this.streamerOf(this.stream.writing)) this.replySeq = 0;
    this.owner.fallBehind(this);
  }

  /** Takes a new entry, or leaves it in the store where there is no room for it. */
  tell(entry: StreamEntry, frame: () => Frame): void {
    this.newest = entry.seq;
    if (this.isBehind) return;
    // Without a subscription nothing mattered until now.
    if (!this.isSubscribed) this.sent = Math.max(this.sent, entry.seq - 1);
    if (this.sent >= entry.seq) return;
    const fits = !this.owner.sink.isFull || !(this.isSubscribed || this.#endsIn(entry).length > 0);
    if (this.sent === entry.seq - 1 && fits) this.take(entry, frame);
    else this.owner.fallBehind(this);
  }

  take(entry: StreamEntry, frame: () => Frame): void {
    const ended = this.#endsIn(entry);
    if (this.isSubscribed) this.owner.sink.push(frame());
    else for (const { call } of ended) call.pushAfterAnswer(frame());
    this.sent = entry.seq;
    if (ended.length === 0) return;
    this.senders = this.senders.filter((sender) => !ended.includes(sender));
    this.dropIdle();
  }

  #endsIn(entry: StreamEntry): readonly Sender[] {
    if (this.senders.length === 0 || !isTurnEnd(entry)) return [];
    return this.senders.filter(({ turnId }) => turnId === entry.turnId);
  }

  /** The sender of a turn that asked for the pieces of its reply. */
  streamerOf(turnId: string): Sender | undefined {
    return this.senders.find((sender) => sender.stream && sender.turnId === turnId);
  }

  /** The offset of the piece of a reply that goes now, up to its `length`; undefined where there is none for this reader. */
  startOfPiece({ turnId, seq, length }: { turnId: string; seq: number; length: number }): number | undefined {
    if (!this.streamerOf(turnId) && (this.isBehind || this.sent < seq)) return undefined;
    if (this.replySeq !== seq) {
      this.replySeq = seq;
      this.offset = 0;
    }
    const { offset } = this;
    if (offset >= length) return undefined;
    this.offset = length;
    return this.owner.sink.isFull ? undefined : offset;
  }
}

export function isTurnEnd({ name }: Pick<StreamEntry, "name">): boolean {
  return name === "turn.completed" || name === "turn.failed" || name === "turn.cancelled";
}
