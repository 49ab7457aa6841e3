import type { ServerResponse } from "node:http";

/** One server-sent event. `data` is sent as JSON, which holds no line break. */
export type SseEvent = { event: string; id: string; data: unknown };

const COMMENT_EVERY_MS = 15_000;
const STUCK_MS = 30_000;

const open = new Set<EventStream>();
let ticker: NodeJS.Timeout | undefined;

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
  events: AsyncIterable<SseEvent>,
  fail: (error: unknown) => void,
): { stop(): void } => {
  const stream = new EventStream(res, events[Symbol.asyncIterator](), fail);
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
  readonly #events: AsyncIterator<SseEvent>;
  readonly #fail: (error: unknown) => void;
  #last = performance.now();
  #corked = false;
  #over = false;

  constructor(res: ServerResponse, events: AsyncIterator<SseEvent>, fail: (error: unknown) => void) {
    this.#res = res;
    this.#events = events;
    this.#fail = fail;
  }

  begin(headers: Record<string, string>): void {
    open.add(this);
    ticker ??= setInterval(tick, 1_000).unref();
    this.#cork();
    this.#res.writeHead(200, headers);
    this.#res.flushHeaders();
    this.#pull();
  }

  stop(): void {
    if (this.#over) return;
    this.#end();
    // Whoever makes the events lets go of what it holds for them.
    this.#events.return?.().catch(() => {});
    this.#finish();
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

  readonly #take = ({ done, value }: IteratorResult<SseEvent, unknown>): void => {
    if (this.#over) return;
    try {
      if (done) {
        this.#end();
        this.#finish();
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
    this.#fail(error);
  };

  #send({ event, id, data }: SseEvent): void {
    this.#cork();
    this.#last = performance.now();
    const isTaken = this.#res.write(`event: ${event}\nid: ${id}\ndata: ${JSON.stringify(data)}\n\n`);
    const next = () => this.#over || this.#pull();
    if (!isTaken) this.#res.once("drain", next);
    else if (this.#isFull) this.#res.socket?.once("drain", next);
    else this.#pull();
  }

  /** Node 24 says of a corked response whether there is room in it, and nothing of what waits behind it. */
  get #isFull(): boolean {
    return this.#res.writableNeedDrain || this.#res.socket?.writableNeedDrain === true;
  }

  #cork(): void {
    if (this.#corked) return;
    this.#corked = true;
    this.#res.cork();
    setImmediate(uncork, this);
  }

  uncork(): void {
    if (!this.#corked) return;
    this.#corked = false;
    this.#res.uncork();
  }

  /** Uncorked first: Node 24 would send the end of a corked response before what was written to it. */
  #finish(): void {
    this.uncork();
    this.#res.end();
  }

  #end(): void {
    this.#over = true;
    open.delete(this);
    if (open.size > 0) return;
    clearInterval(ticker);
    ticker = undefined;
  }
}

const uncork = (stream: EventStream): void => stream.uncork();
