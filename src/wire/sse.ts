import type { ServerResponse } from "node:http";

/** One server-sent event. `data` is sent as JSON, which holds no line break. */
export type SseEvent = { event: string; id: string; data: unknown };

/** How events are written: each of them, and what stands behind the last one, or where they are stopped before it. */
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
/** So many characters do not wait for the end of the turn of the event loop. */
const MOST_WAITING = 16 * 1024;

const open = new Set<EventStream>();
let ticker: NodeJS.Timeout | undefined;
/** Those that write at the end of this turn of the event loop. */
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
 * Sends events as a stream until they end. Events of one tick share a write; a reader that is behind is waited for, and cut when it
 * takes nothing for 30 s. To be stopped when the caller has gone or must wait no longer; `fail` is called when the events cannot go on.
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
  /** What was said in this turn of the event loop. */
  #text = "";
  #isDue = false;
  #isCorked = false;
  #over = false;

  constructor(res: ServerResponse, events: AsyncIterator<unknown>, fail: (error: unknown) => void, framing: Framing) {
    this.#res = res;
    this.#events = events;
    this.#fail = fail;
    this.#framing = framing;
  }

  begin(headers: Record<string, string>): void {
    open.add(this);
    ticker ??= setInterval(tick, 1_000).unref();
    // Its head leaves with its first events.
    this.#isCorked = true;
    this.#res.cork();
    this.#flushSoon();
    this.#res.writeHead(200, headers);
    this.#res.flushHeaders();
    this.#pull();
  }

  stop(): void {
    if (this.#over) return;
    this.#end();
    // Whoever makes the events lets go of what it holds for them.
    this.#events.return?.().catch(() => {});
    this.#finish(this.#framing.stopped);
  }

  tick(now: number): void {
    if (this.#isFull) {
      if (now - this.#last >= STUCK_MS) this.#res.destroy();
    } else if (now - this.#last >= COMMENT_EVERY_MS) {
      this.#res.write(":\n\n");
      this.#last = now;
    }
  }

  #pull(): void {
    this.#events.next().then(this.#take, this.#refuse);
  }

  readonly #take = ({ done, value }: IteratorResult<unknown, unknown>): void => {
    if (this.#over) return;
    try {
      if (done) {
        this.#end();
        this.#finish(this.#framing.end);
      } else {
        this.#send(value);
      }
    } catch (error) {
      this.#refuse(error);
    }
  };

  readonly #refuse = (error: unknown): void => {
    if (this.#over) return;
    this.#end();
    this.flush();
    this.#fail(error);
  };

  #send(event: unknown): void {
    this.#last = performance.now();
    this.#text += this.#framing.frame(event);
    if (this.#text.length < MOST_WAITING) this.#flushSoon();
    else this.flush();
    const next = () => this.#over || this.#pull();
    if (this.#res.writableNeedDrain) this.#res.once("drain", next);
    else if (this.#isFull) this.#res.socket?.once("drain", next);
    else this.#pull();
  }

  /** Node 24 says of a corked response whether there is room in it, and nothing of what waits behind it. */
  get #isFull(): boolean {
    return this.#res.writableNeedDrain || this.#res.socket?.writableNeedDrain === true;
  }

  #flushSoon(): void {
    if (this.#isDue) return;
    this.#isDue = true;
    if (due.push(this) === 1) setImmediate(flushDue);
  }

  flush(): void {
    this.#isDue = false;
    const text = this.#takeText();
    if (text !== "") this.#res.write(text);
    this.#uncork();
  }

  #takeText(): string {
    const text = this.#text;
    this.#text = "";
    return text;
  }

  #uncork(): void {
    if (!this.#isCorked) return;
    this.#isCorked = false;
    this.#res.uncork();
  }

  /** Uncorked first: Node 24 would send the end of a corked response before what was written to it. */
  #finish(last = ""): void {
    this.#uncork();
    this.#res.end(this.#takeText() + last);
  }

  #end(): void {
    this.#over = true;
    open.delete(this);
    if (open.size > 0) return;
    clearInterval(ticker);
    ticker = undefined;
  }
}
