import type { Clock } from "#kit/clock.ts";
import type { Events } from "#observe/events.ts";
import type { DeliveryReader } from "./delivery-pushes.ts";
import { type PushSink, StreamReader } from "./stream-reader.ts";
import { SessionStream } from "./streams.ts";

/** What a connection is still to be told beside its streams: read from the store when there is room. */
export type Owed = () => Promise<void>;

export type SubscriberParts = { clock: Clock; events: Pick<Events, "storeFailed"> };

const PAGE = 32;
/** A store that did not answer is asked again after so long. */
const RETRY_MS = 1_000;
/** Sessions that wait for one connection. One that lets more pile up is cut, and goes on by its cursors. */
const MOST_BEHIND = 10_000;

/** What one connection is subscribed to; made when it first is. */
export class Subscriber {
  readonly sink: PushSink;
  readonly readers = new Map<string, StreamReader<SessionStream>>();
  /** Sessions that were asked for by id; readers of others are there because of their agent. */
  readonly named = new Set<string>();
  readonly agents = new Set<string>();
  gateway: StreamReader | undefined = undefined;
  deliveries: DeliveryReader | undefined = undefined;
  /** One request after the other: each sees what the one before left. */
  turn: Promise<unknown> = Promise.resolve();
  readonly #behind = new Set<StreamReader>();
  readonly #owed: Owed[] = [];
  readonly #parts: SubscriberParts;
  #isPumping = false;
  #isDue = false;

  constructor(sink: PushSink, parts: SubscriberParts) {
    this.sink = sink;
    this.#parts = parts;
  }

  /** The session's entries come to it by a subscription. */
  covers(sessionId: string, agent: string): boolean {
    const reader = this.readers.get(sessionId);
    return reader ? reader.sent !== undefined : this.agents.has(agent);
  }

  join(stream: SessionStream): StreamReader<SessionStream> {
    const reader = new StreamReader(this.sink, stream);
    this.readers.set(stream.sessionId, reader);
    stream.readers.add(reader);
    return reader;
  }

  /** Takes a reader away, of whatever stream. */
  drop(reader: StreamReader): void {
    const { stream } = reader;
    reader.leave();
    stream.readers.delete(reader);
    this.#behind.delete(reader);
    if (reader === this.gateway) this.gateway = undefined;
    else if (stream instanceof SessionStream) this.readers.delete(stream.sessionId);
  }

  dropDeliveries(): void {
    this.deliveries?.stop();
    this.deliveries = undefined;
  }

  fallBehind(reader: StreamReader): void {
    this.#behind.add(reader);
    if (this.#behind.size > MOST_BEHIND) this.sink.cut();
    this.pumpSoon();
  }

  owe(owed: Owed): void {
    this.#owed.push(owed);
    this.pumpSoon();
  }

  /** After what is under way now: the answer to a call goes before the pushes that it causes. */
  pumpSoon(): void {
    if (this.#isDue || this.#isPumping) return;
    this.#isDue = true;
    setImmediate(() => {
      this.#isDue = false;
      this.#pump();
    });
  }

  /** Sends what waits in the store, as far as there is room. */
  #pump(): void {
    if (this.#isPumping || (this.#behind.size === 0 && this.#owed.length === 0)) return;
    this.#isPumping = true;
    this.#pumpOn().then(
      () => {
        this.#isPumping = false;
      },
      (error: unknown) => {
        this.#isPumping = false;
        this.#parts.events.storeFailed({ operation: "readEntries", error });
        this.#parts.clock.after(RETRY_MS, () => this.pumpSoon());
      },
    );
  }

  async #pumpOn(): Promise<void> {
    while (this.sink.isOpen) {
      if (!this.sink.hasRoom) return this.sink.hold();
      const [owed] = this.#owed;
      const [reader] = this.#behind;
      if (owed) {
        await owed();
        this.#owed.shift();
      } else if (reader) await this.#readOn(reader);
      else return;
      // What was sent is written between two pages, so that room is what it says.
      await new Promise<void>((resolve) => setImmediate(resolve));
    }
  }

  async #readOn(reader: StreamReader): Promise<void> {
    const { stream, sink } = reader;
    const from = reader.sent ?? 0;
    if (reader.isReset) {
      reader.isReset = false;
      sink.push(stream.resetFrame(from));
    }
    const { heard } = reader;
    const page = await stream.read(from, PAGE);
    if (reader.isOver || (reader.sent ?? 0) !== from) return;
    const before = (page[0]?.seq ?? 0) - 1;
    if (before > from) {
      // What lies between was let go while this reader was behind.
      reader.start(before, false);
      sink.push(stream.resetFrame(before));
    }
    for (const entry of page) {
      if (!sink.hasRoom) return;
      reader.take(stream.frameOf(entry), entry.seq);
    }
    this.#behind.delete(reader);
    const isNews = reader.heard > (reader.sent ?? 0) && (page.length > 0 || reader.heard !== heard);
    if (page.length === PAGE || isNews) {
      this.#behind.add(reader); // The others have their turn first.
      return;
    }
    reader.isBehind = false;
    stream.caughtUp(reader);
  }
}
