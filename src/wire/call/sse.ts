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

const COMMENT_EVERY_MS = 15_000;
const STUCK_MS = 30_000;
/** A longer text does not wait for the end of the turn of the event loop. */
const MOST_WAITING = 16 * 1024;

const open = new Set<EventStream>();
let ticker: NodeJS.Timeout | undefined;
/** The streams that write at the end of this turn of the event loop. */
let due: EventStream[] = [];

const flushDue = (): void => {
  const streams = due;
  due = [];
  for (const stream of streams) stream.flush();
};

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
  const stream = new EventStream(res, events[Symbol.asyncIterator](), fail, framing);
  stream.begin({
    "content-type": "text/event-stream",
    "cache-control": "no-cache, no-transform",
    "x-accel-buffering": "no",
    ...headers,
  });
  return stream;
};

/** A class and no loop over the events, as thousands of these may wait at once: a waiting one holds no frame of a function. */
class EventStream {
  readonly #res: ServerResponse;
  readonly #events: AsyncIterator<unknown>;
  readonly #fail: (error: unknown) => void;
  readonly #framing: Framing;
  #last = performance.now();
  /** The events of this turn of the event loop. */
  #text = "";
  #isDue = false;
  /** The reader is, and the next event waits for it. */
  #isBehind = false;
  #isStopping = false;
  #isOver = false;

  constructor(res: ServerResponse, events: AsyncIterator<unknown>, fail: (error: unknown) => void, framing: Framing) {
    this.#res = res;
    this.#events = events;
    this.#fail = fail;
    this.#framing = framing;
  }

  begin(headers: Record<string, string>): void {
    open.add(this);
    ticker ??= setInterval(tick, 1_000).unref();
    this.#res.writeHead(200, headers);
    this.#flushSoon();
    this.#askNext();
  }

  /** An event that is there already, as the end of its turn, is still sent. */
  stop(): void {
    if (this.#isOver || this.#isStopping) return;
    this.#isStopping = true;
    setImmediate(() => {
      if (this.#isOver) return;
      this.#close();
      // Lets the maker of the events drop all that it holds for them.
      this.#events.return?.().catch(() => {});
      this.#res.end(this.#takeText() + (this.#framing.stopped ?? ""));
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
  flush(): void {
    this.#isDue = false;
    if (this.#isOver) return;
    const text = this.#takeText();
    if (text === "") this.#res.flushHeaders();
    else this.#res.write(text);
  }

  #flushSoon(): void {
    if (this.#isDue) return;
    this.#isDue = true;
    if (due.push(this) === 1) setImmediate(flushDue);
  }

  #askNext(): void {
    this.#events.next().then(this.#send, this.#refuse);
  }

  readonly #send = ({ done, value }: IteratorResult<unknown, unknown>): void => {
    if (this.#isOver) return;
    if (done) {
      this.#close();
      this.#res.end(this.#takeText() + (this.#framing.end ?? ""));
      return;
    }
    this.#last = performance.now();
    try {
      this.#text += this.#framing.frame(value);
    } catch (error) {
      this.#refuse(error);
      return;
    }
    if (this.#text.length < MOST_WAITING) this.#flushSoon();
    else this.flush();
    if (this.#isFull) this.#waitForRoom();
    else this.#askNext();
  };

  readonly #refuse = (error: unknown): void => {
    if (this.#isOver) return;
    this.flush();
    this.#close();
    this.#fail(error);
  };

  #waitForRoom(): void {
    if (this.#isBehind) return;
    this.#isBehind = true;
    const goOn = () => {
      this.#isBehind = false;
      if (!this.#isOver) this.#askNext();
    };
    if (this.#res.writableNeedDrain) this.#res.once("drain", goOn);
    else this.#res.socket?.once("drain", goOn);
  }

  get #isFull(): boolean {
    return this.#res.writableNeedDrain || this.#res.socket?.writableNeedDrain === true;
  }

  #takeText(): string {
    const text = this.#text;
    this.#text = "";
    return text;
  }

  #close(): void {
    this.#isOver = true;
    open.delete(this);
    if (open.size > 0) return;
    clearInterval(ticker);
    ticker = undefined;
  }
}
