import { type Clock, sleep } from "#kit/clock.ts";
import { yieldToOthers } from "#kit/yield.ts";
import type { Events } from "#observe/events.ts";
import type { RpcCaller } from "#wire/rpc/rpc.ts";
import type { Frame } from "./frame.ts";

/** The target of pushes: the part of a connection that its subscriptions use. */
export type PushSink = {
  /** The owner of the connection, with its current rights. */
  readonly caller: RpcCaller;
  readonly isOpen: boolean;
  /** True if too many bytes are unsent: entries must then be read from the store later. */
  readonly isFull: boolean;
  /** True if entries that waited in the store can be sent. */
  readonly hasRoom: boolean;
  push(frame: Frame): void;
  /** Called if a push was held back: the subscriber is then notified when there is room again. */
  hold(): void;
  /** Closes the connection, because it has no room for a push that cannot wait. */
  closeTooSlow(): void;
};

/** A source of pushes that wait until the connection has room. */
export interface Source {
  /** Sends some of the pushes. Returns true if there are more. */
  page(): Promise<boolean>;
}

export type PumpParts = { clock: Clock; events: Pick<Events, "storeFailed"> };

/** The pause after a failed read. No source is read meanwhile. */
const RETRY_MS = 1_000;
/** The most sources of a connection that may wait. With more, the connection is closed, and the client resumes with its cursors. */
const MOST_WAITING = 10_000;

/** Sends the waiting pushes of one connection while there is room, one page of one source at a time. */
export class Pump {
  readonly #sink: PushSink;
  readonly #parts: PumpParts;
  readonly #waiting = new Set<Source>();
  #isRunning = false;
  #isDue = false;

  constructor(sink: PushSink, parts: PumpParts) {
    this.#sink = sink;
    this.#parts = parts;
  }

  add(source: Source): void {
    this.#waiting.add(source);
    if (this.#waiting.size > MOST_WAITING) this.#sink.closeTooSlow();
    this.startSoon();
  }

  delete(source: Source): void {
    this.#waiting.delete(source);
  }

  /** Starts in the next tick, so that the answer to a call precedes the pushes that the call causes. */
  startSoon(): void {
    if (this.#isDue || this.#isRunning || this.#waiting.size === 0) return;
    this.#isDue = true;
    setImmediate(() => {
      this.#isDue = false;
      void this.#run();
    });
  }

  async #run(): Promise<void> {
    const { clock, events } = this.#parts;
    this.#isRunning = true;
    for (let [source] = this.#waiting; source && this.#sink.isOpen; [source] = this.#waiting) {
      if (!this.#sink.hasRoom) {
        this.#sink.hold();
        break;
      }
      // The source may be added again during the read.
      this.#waiting.delete(source);
      try {
        if (await source.page()) this.#waiting.add(source);
        // The socket writes the messages of a page before the next page, so that `hasRoom` is current.
        await yieldToOthers();
      } catch (error) {
        this.#waiting.add(source);
        events.storeFailed({ operation: "readEntries", error });
        await sleep(clock, RETRY_MS);
      }
    }
    this.#isRunning = false;
  }
}
