import type { ServerResponse } from "node:http";
import { sendAtTickEnd } from "#kit/tick-end.ts";

/** One server-sent event. `data` is sent as JSON, which holds no line break. */
export type SseEvent = { event: string; id: string; data: unknown };

/** The form of events: each of them, and the text behind the last one, or behind the stop of a stream. */
export type Framing = { frame(event: unknown): string; end: string; stopped: string };

const PLAIN: Framing = {
  frame(event) {
    const { event: name, id, data } = event as SseEvent;
    return `event: ${name}\nid: ${id}\ndata: ${JSON.stringify(data)}\n\n`;
  },
  end: "",
  stopped: "",
};

/** The headers of every stream of events. */
export const STREAM_HEADERS = {
  "content-type": "text/event-stream",
  "cache-control": "no-store, no-transform",
  "x-content-type-options": "nosniff",
  "x-accel-buffering": "no",
};
const COMMENT = ":\n\n";
const COMMENT_EVERY_MS = 15_000;
/** More text than this does not wait for the end of the tick. */
const MOST_UNSENT = 16 * 1024;

/**
 * An answer that is a stream of events, until they end. Events of one tick of the event loop share a write, and a reader that is behind is waited
 * for. `fail` is called if the events cannot continue.
 */
export class EventStream {
  readonly #res: ServerResponse;
  readonly #source: AsyncIterator<unknown>;
  readonly #framing: Framing;
  readonly #comments: NodeJS.Timeout;
  #unsent = "";
  #hasBegun = false;
  #isOver = false;

  constructor(
    res: ServerResponse,
    headers: Record<string, string>,
    events: AsyncIterable<unknown>,
    fail: (error: unknown) => void,
    framing = PLAIN,
  ) {
    this.#res = res;
    this.#source = events[Symbol.asyncIterator]();
    this.#framing = framing;
    this.#comments = setInterval(() => isFull(res) || res.write(COMMENT), COMMENT_EVERY_MS).unref();
    res.writeHead(200, Object.assign({}, STREAM_HEADERS, headers));
    sendAtTickEnd(this.#flush);
    this.#send().catch((error: unknown) => {
      if (this.#isOver) return;
      if (this.#unsent !== "") this.#flush();
      this.#close();
      fail(error);
    });
  }

  /** Must be called when the caller has disconnected or must wait no longer. An existing event, such as the end of the turn, is still sent. */
  stop(): void {
    sendAtTickEnd(() => {
      if (this.#isOver) return;
      this.#end(this.#framing.stopped);
      // Lets the maker of the events drop all that it holds for them.
      this.#source.return?.().catch(() => {});
    });
  }

  async #send(): Promise<void> {
    const res = this.#res;
    while (!this.#isOver) {
      const { done, value } = await this.#source.next();
      if (this.#isOver) return;
      if (done) return this.#end(this.#framing.end);
      this.#comments.refresh();
      this.#unsent += this.#framing.frame(value);
      if (this.#unsent.length > MOST_UNSENT) this.#flush();
      else sendAtTickEnd(this.#flush);
      if (isFull(res)) await drained(res);
    }
  }

  /** The head leaves with the first events, or alone if there are none yet. */
  readonly #flush = (): void => {
    const text = this.#unsent;
    if (this.#isOver) return;
    this.#unsent = "";
    if (text !== "") this.#res.write(text);
    else if (!this.#hasBegun) this.#res.flushHeaders();
    this.#hasBegun = true;
  };

  #end(last: string): void {
    this.#close();
    this.#res.end(this.#unsent + last);
  }

  #close(): void {
    this.#isOver = true;
    clearInterval(this.#comments);
  }
}

export function isFull(res: ServerResponse): boolean {
  return res.writableNeedDrain || res.socket?.writableNeedDrain === true;
}

/** Its socket may be full where the answer itself is not. Never resolves if the connection closes first. */
export function drained(res: ServerResponse): Promise<void> {
  return new Promise((resolve) => (res.writableNeedDrain ? res : res.socket)?.once("drain", resolve));
}
