import type { Stream } from "./streams.ts";

/** Where pushes go: one connection, as subscriptions see it. */
export type PushSink = {
  readonly isOpen: boolean;
  /** So much waits to be sent that what happens now has to wait in the store. */
  readonly isFull: boolean;
  /** What waited in the store may be sent. */
  readonly hasRoom: boolean;
  push(frame: string): void;
  /** Something was kept back: `subscriber.pump` is to be called when there is room again. */
  hold(): void;
  /** Ends a connection that cannot be told what cannot wait. */
  cut(): void;
};

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
  heard = 0;
  /** The stream is not the one that its cursor was of: to be told first. */
  isReset = false;
  isOver = false;
  /** Of the reply `replySeq`, so much was sent or left out. */
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
  take(frame: string, seq: number): void {
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

  /** What was not sent of the reply `seq` up to `length` goes now; the piece from `offset`, or undefined where there is none for it. */
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
