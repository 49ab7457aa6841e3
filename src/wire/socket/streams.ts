import type { GatewayStream as GatewayEntries } from "#core/gateway-stream.ts";
import type { GatewayEntry } from "#store/store.ts";
import type { Frame } from "./frame.ts";
import type { PushFrames } from "./pushes.ts";

/** The target of pushes: the part of a connection that its subscriptions use. */
export type PushSink = {
  readonly isOpen: boolean;
  /** True if too many bytes are unsent: entries must then be read from the store later. */
  readonly isFull: boolean;
  /** True if entries that waited in the store can be sent. */
  readonly hasRoom: boolean;
  push(frame: Frame): void;
  /** Called if a push was held back: the subscriber is then notified when there is room again. */
  hold(): void;
  /** Closes the connection, because it has no room for a push that cannot wait. */
  cut(): void;
};

/** The owner of the readers of one connection. */
export type ReaderOwner = {
  readonly sink: PushSink;
  /** The agents that the connection is subscribed to. */
  readonly agents: { has(name: string): boolean };
  /** Makes the reader continue from the store as soon as there is room. */
  fallBehind(reader: Reader): void;
  drop(reader: Reader): void;
  /** Pushes the end of a deleted session. */
  pushDeleted(frame: Frame): void;
};

/** The call that started a turn. Its pushes are sent after its answer. */
export type PendingCall = { pushAfterAnswer(frame: Frame): void };

/** A sender that gets the end of its turn, and with `stream` also the pieces of the reply. */
export type Sender = { turnId: string; stream: boolean; call: PendingCall };

type StreamEntry = { readonly seq: number; readonly name: string; readonly turnId?: string };

/** A stream with readers. Entries are in the order of `seq`, and the frame of an entry is created once for all readers. */
export abstract class Stream<Item extends StreamEntry = StreamEntry> {
  readonly readers = new Set<Reader>();

  abstract frameOf(entry: Item): Frame;
  /** Reads at most `limit` entries after the `seq` `after`. */
  abstract read(after: number, limit: number): Promise<readonly Item[]>;
  abstract resetFrame(seq: number): Frame;
  /** Called when the last reader has left. */
  abstract close(): void;
  /** Called when a reader has reached the current end of the stream. */
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

/** The gateway's stream. It is followed only while it has readers. */
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
 * The place of a connection in a stream. A subscriber gets every entry. The sender of a message gets the end of its turn, but only once if it is also
 * a subscriber. A reader that is up to date gets entries as they are published. A reader that is behind reads them from the store, so that its memory
 * does not depend on how far it is behind.
 */
export class Reader<Of extends Stream = Stream> {
  readonly owner: ReaderOwner;
  readonly stream: Of;
  isSubscribed = false;
  /** True if the client subscribed to the session by id, and not only to its agent. */
  isNamed = false;
  /** True while a request to subscribe is being processed. */
  isHeld = false;
  senders: readonly Sender[] = [];
  /** The `seq` of the last entry that was sent or skipped. */
  sent = 0;
  isBehind = false;
  /** The `seq` of the newest entry that was published. */
  newest = 0;
  /** True if the cursor was of another stream: the client gets a `stream.reset` first. */
  isReset = false;
  isOver = false;
  /** The `seq` of the first entry of the reply that is being written. */
  replySeq = 0;
  /** The length of this reply that was sent or skipped. */
  offset = 0;

  constructor(owner: ReaderOwner, stream: Of) {
    this.owner = owner;
    this.stream = stream;
    stream.readers.add(this);
  }

  /** Ends the subscription. The reader remains while a sender needs it. */
  release(): void {
    this.isSubscribed = false;
    this.isReset = false;
    this.dropIdle();
  }

  dropIdle(): void {
    if (!this.isSubscribed && !this.isHeld && this.senders.length === 0) this.owner.drop(this);
  }

  /** Subscribes to the entries after `seq`, and reads those that exist. With `isReset`, the client gets a `stream.reset` first. */
  start(seq: number, isReset: boolean): void {
    this.isSubscribed = true;
    this.sent = seq;
    this.isReset = isReset;
    // Pieces that the sender has already received are not sent again.
    if (!this.streamerOf(this.stream.writing)) this.replySeq = 0;
    this.owner.fallBehind(this);
  }

  /** Sends a new entry. If there is no room, the reader reads it from the store later. */
  tell(entry: StreamEntry, frame: () => Frame): void {
    this.newest = entry.seq;
    if (this.isBehind) return;
    // Without a subscription, earlier entries are skipped.
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

  /** The sender of this turn, if it gets the pieces of the reply. */
  streamerOf(turnId: string): Sender | undefined {
    return this.senders.find((sender) => sender.stream && sender.turnId === turnId);
  }

  /** The offset of the next piece of a reply, which ends at `length`. Undefined if this reader gets no piece now. */
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
