import type { ServerResponse } from "node:http";

/** One server-sent event. `data` is sent as JSON, which holds no line break. */
export type SseEvent = { event: string; id: string; data: unknown };

/** The form of events: each of them, and the text behind the last one, or behind the stop of a stream. */
export type Framing = { frame(event: unknown): string; end: string | undefined; stopped: string | undefined };

const PLAIN: Framing = {
  frame(event) {
    const { event: name, id, data } = event as SseEvent;
    return `event: ${name}\nid: ${id}\ndata: ${JSON.stringify(data)}\n\n`;
  },
  end: undefined,
  stopped: undefined,
};

const HEADERS = {
  "content-type": "text/event-stream",
  "cache-control": "no-cache, no-transform",
  "x-accel-buffering": "no",
};
const COMMENT_EVERY_MS = 15_000;
const STUCK_MS = 30_000;
/** A longer text does not wait for the end of the turn of the event loop. */
const MOST_WAITING = 16 * 1024;

const open = new Set<EventStream>();
let ticker: NodeJS.Timeout | undefined;

/** One timer for all streams: an idle stream costs no timer of its own. */
const tick = () => {
  const now = performance.now();
  for (const stream of open) stream.tick(now);
};

/**
 * Sends events as a stream until they end. Events of one turn of the event loop share a write; a reader that is behind is waited for, and
 * cut when it takes nothing for 30 s. To be stopped when the caller has gone or must wait no longer; `fail` is called when the events
 * cannot go on.
 */
export const sendEvents = (
  res: ServerResponse,
  headers: Record<string, string>,
  events: AsyncIterable<unknown>,
  fail: (error: unknown) => void,
  framing = PLAIN,
): { stop(): void } => {
  const stream = new EventStream(res, events[Symbol.asyncIterator](), framing);
  res.writeHead(200, { ...HEADERS, ...headers });
  void stream.send(fail);
  return stream;
};

class EventStream {
  readonly #res: ServerResponse;
  readonly #events: AsyncIterator<unknown>;
  readonly #framing: Framing;
  #last = performance.now();
  /** The events of this turn of the event loop. */
  #text = "";
  #isDue = false;
  #isStopping = false;
  #isOver = false;

  constructor(res: ServerResponse, events: AsyncIterator<unknown>, framing: Framing) {
    this.#res = res;
    this.#events = events;
    this.#framing = framing;
    open.add(this);
    ticker ??= setInterval(tick, 1_000).unref();
  }

  async send(fail: (error: unknown) => void): Promise<void> {
    try {
      this.#write("");
      while (!this.#isOver) {
        const { done, value } = await this.#events.next();
        if (this.#isOver) return;
        if (done) return this.#end(this.#framing.end);
        this.#last = performance.now();
        this.#write(this.#framing.frame(value));
        if (this.#isFull) await this.#drained();
      }
    } catch (error) {
      if (this.#isOver) return;
      this.#flush();
      this.#close();
      fail(error);
    }
  }

  /** An event that is there already, as the end of its turn, is still sent. */
  stop(): void {
    if (this.#isOver || this.#isStopping) return;
    this.#isStopping = true;
    setImmediate(() => {
      if (this.#isOver) return;
      this.#end(this.#framing.stopped);
      // Lets the maker of the events drop all that it holds for them.
      this.#events.return?.().catch(() => {});
    });
  }

  tick(now: number): void {
    if (this.#isFull) {
      if (now - this.#last >= STUCK_MS) this.#res.destroy();
    } else if (now - this.#last >= COMMENT_EVERY_MS) {
      this.#res.write(":\n\n");
      this.#last = now;
    }
  }

  /** The head leaves with the first events, or alone where there are none yet. */
  #write(text: string): void {
    this.#text += text;
    if (this.#text.length >= MOST_WAITING) this.#flush();
    else if (!this.#isDue) {
      this.#isDue = true;
      setImmediate(() => this.#flush());
    }
  }

  #flush(): void {
    this.#isDue = false;
    if (this.#isOver) return;
    const text = this.#takeText();
    if (text === "") this.#res.flushHeaders();
    else this.#res.write(text);
  }

  get #isFull(): boolean {
    return this.#res.writableNeedDrain || this.#res.socket?.writableNeedDrain === true;
  }

  /** Its socket may be full where the answer itself is not. */
  #drained(): Promise<void> {
    const res = this.#res;
    return new Promise((resolve) => (res.writableNeedDrain ? res : res.socket)?.once("drain", resolve));
  }

  #takeText(): string {
    const text = this.#text;
    this.#text = "";
    return text;
  }

  #end(text = ""): void {
    this.#close();
    this.#res.end(this.#takeText() + text);
  }

  #close(): void {
    this.#isOver = true;
    open.delete(this);
    if (open.size > 0) return;
    clearInterval(ticker);
    ticker = undefined;
  }
}
