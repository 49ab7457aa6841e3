import type { ServerResponse } from "node:http";
import { DELTA, type DeltaEvent, type Framing, isPlainText, PLAIN, type SseEvent, startOf } from "./sse-frames.ts";

/**
 * Events that need no promise each: `pull` has the next one, or undefined where there is none yet; then it calls `wake` once, as soon as it is
 * worth another look.
 */
type Pulled = AsyncIterator<unknown> & { pull(wake: () => void): IteratorResult<unknown, unknown> | undefined };

const isPulled = (events: AsyncIterator<unknown>): events is Pulled => "pull" in events;

const COMMENT_EVERY_MS = 15_000;
const STUCK_MS = 30_000;
/** So many characters do not wait for the end of the turn of the event loop. */
const MOST_WAITING = 16 * 1024;
const AT_ONCE = 32;

const open = new Set<EventStream>();
let ticker: NodeJS.Timeout | undefined;
/** Those that write at the end of this turn of the event loop. */
let due: EventStream[] = [];

const flushDue = (): void => {
  const streams = due;
  due = [];
  const now = performance.now();
  for (const stream of streams) stream.writeDue(now);
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
  #isAscii = true;
  /** The reply whose pieces came last, and what their events have in common. */
  #message = "";
  #seq = 0;
  #start = "";
  #isDue = false;
  #isCorked = false;
  /** The reader is, and what there is waits for it. */
  #isBehind = false;
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
    this.#res.writeHead(200, headers);
    this.#res.flushHeaders();
    this.#flushSoon();
    this.#goOn();
  }

  stop(): void {
    if (this.#over) return;
    // What there is already, as the end of its turn, is still told.
    if (!this.#isBehind && isPulled(this.#events)) this.#collect(this.#events, performance.now());
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

  /** Asks for the next event, or collects all that there are, to be written at the end of this turn of the event loop. */
  #goOn(): void {
    if (isPulled(this.#events)) {
      this.#flushSoon();
      this.#collect(this.#events, performance.now());
    } else this.#events.next().then(this.#take, this.#refuse);
  }

  readonly #wake = (): void => {
    if (this.#over || this.#isBehind) return;
    if (this.#message === "" && this.#framing === PLAIN) this.#lookForPiece(this.#events as Pulled);
    else this.#flushSoon();
  };

  /** A reply's first piece is waited for: it leaves at once, and not behind the pieces of other replies. */
  #lookForPiece(events: Pulled): void {
    this.#collect(events, performance.now());
    if (this.#over) return;
    if (this.#message === "") this.#flushSoon();
    else if (this.flush()) this.#waitForRoom();
  }

  writeDue(now: number): void {
    const isPulling = !this.#over && !this.#isBehind && isPulled(this.#events);
    if (isPulling) this.#collect(this.#events as Pulled, now);
    const mayBeFull = this.flush();
    if (isPulling && mayBeFull) this.#waitForRoom();
  }

  /** Takes all that there is, as long as there is room. */
  #collect(events: Pulled, now: number): void {
    try {
      for (let step = events.pull(this.#wake); step; step = events.pull(this.#wake)) {
        if (step.done) {
          this.#end();
          this.#finish(this.#framing.end);
          return;
        }
        this.#last = now;
        this.#append(step.value);
        if (this.#text.length < MOST_WAITING) continue;
        this.flush();
        this.#waitForRoom();
        if (this.#isBehind) return;
      }
    } catch (error) {
      this.#refuse(error);
    }
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
    this.#append(event);
    if (this.#text.length < MOST_WAITING) this.#flushSoon();
    else this.flush();
    this.#waitForRoom();
    if (!this.#isBehind) this.#goOn();
  }

  #append(event: unknown): void {
    if (this.#framing === PLAIN && (event as SseEvent).event === DELTA) this.#appendDelta(event as DeltaEvent);
    else {
      this.#isAscii = false;
      this.#text += this.#framing.frame(event);
    }
  }

  /** By hand, as these are most of all events. */
  #appendDelta({ id, data }: DeltaEvent): void {
    const { message_id: message, seq, text } = data;
    if (seq !== this.#seq || message !== this.#message) {
      this.#message = message;
      this.#seq = seq;
      this.#start = startOf(data);
    }
    const before = `event: message.delta\nid: ${id}${this.#start}${data.offset}`;
    if (isPlainText(text)) this.#text += `${before},"text":"${text}"}\n\n`;
    else {
      this.#isAscii = false;
      this.#text += `${before},"text":${JSON.stringify(text)}}\n\n`;
    }
  }

  /** Goes on when the reader has caught up, where it is behind. */
  #waitForRoom(): void {
    if (this.#isBehind || this.#over || !this.#isFull) return;
    this.#isBehind = true;
    const next = () => {
      this.#isBehind = false;
      if (!this.#over) this.#goOn();
    };
    if (this.#res.writableNeedDrain) this.#res.once("drain", next);
    else this.#res.socket?.once("drain", next);
  }

  /** Node 24 says of a corked response whether there is room in it, and nothing of what waits behind it. */
  get #isFull(): boolean {
    return this.#res.writableNeedDrain || this.#res.socket?.writableNeedDrain === true;
  }

  #flushSoon(): void {
    if (this.#isDue) return;
    this.#isDue = true;
    const waiting = due.push(this);
    if (waiting === 1) setImmediate(flushDue);
    // So many leave in one go; more would make the first of them wait for the last.
    else if (waiting === AT_ONCE) flushDue();
  }

  /** False where there is room for more. */
  flush(): boolean {
    this.#isDue = false;
    const encoding = this.#isAscii ? "latin1" : "utf8";
    const text = this.#takeText();
    const isTaken = text === "" || this.#res.write(text, encoding);
    if (isTaken && !this.#isCorked) return false;
    this.#uncork();
    return true;
  }

  #takeText(): string {
    const text = this.#text;
    this.#text = "";
    this.#isAscii = true;
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
