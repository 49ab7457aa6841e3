import type { Socket } from "node:net";
import type { AnswerHeaders } from "./answer-head.ts";
import { AnswerReader, type AnswerTaker } from "./answer-reader.ts";
import type { Gathering, Holdable } from "./gathering.ts";
import { sendSoon } from "./send-soon.ts";

/** Who hears of an answer. Nothing is heard after the end or an error, and only one of these. */
export interface AnswerHandler {
  /** At once: the request is on its way, or waits for its connection. */
  onRequestStart(controller: AnswerController): void;
  onResponseStart(controller: AnswerController, status: number, headers: AnswerHeaders): void;
  /** Those of `bytes` from `from` to `to`. They are another's as soon as this returns: who keeps them keeps a copy. */
  onResponseData(controller: AnswerController, bytes: Buffer, from: number, to: number): void;
  /** All that one read brought has been told; also before the end and an error. */
  onResponseRead?(): void;
  onResponseEnd(controller: AnswerController): void;
  onResponseError(controller: AnswerController, error: Error): void;
}

export interface AnswerController {
  /** Nothing more is read for a while; what was read already still comes. */
  pause(): void;
  resume(): void;
  /** Ends it, and its connection; the handler hears of that as of an error. */
  abort(reason: Error): void;
}

/** One request and its answer. */
export class Asked implements AnswerController, AnswerTaker {
  readonly #handler: AnswerHandler;
  #connection: Connection | undefined;
  #isOver = false;
  #isPaused = false;

  constructor(handler: AnswerHandler) {
    this.#handler = handler;
    handler.onRequestStart(this);
  }

  get isOver(): boolean {
    return this.#isOver;
  }

  /** Its connection is there. */
  sentBy(connection: Connection): void {
    this.#connection = connection;
    if (this.#isPaused) connection.pause();
  }

  pause(): void {
    if (this.#isPaused || this.#isOver) return;
    this.#isPaused = true;
    this.#connection?.pause();
  }

  resume(): void {
    if (!this.#isPaused || this.#isOver) return;
    this.#isPaused = false;
    this.#connection?.resume();
  }

  abort(reason: Error): void {
    if (this.#isOver) return;
    this.fail(reason);
    this.#connection?.destroy();
  }

  fail(error: Error): void {
    if (this.#isOver) return;
    this.#handler.onResponseRead?.();
    // Who heard of it then may have left.
    if (this.#isOver) return;
    this.#isOver = true;
    this.#handler.onResponseError(this, error);
  }

  head(status: number, headers: AnswerHeaders): void {
    if (!this.#isOver) this.#handler.onResponseStart(this, status, headers);
  }

  body(bytes: Buffer, from: number, to: number): void {
    if (!this.#isOver) this.#handler.onResponseData(this, bytes, from, to);
  }

  read(): void {
    if (!this.#isOver) this.#handler.onResponseRead?.();
  }

  whole(): void {
    this.read();
    if (this.#isOver) return;
    this.#isOver = true;
    if (this.#isPaused) this.#connection?.resume();
    try {
      this.#handler.onResponseEnd(this);
    } catch (error) {
      this.#handler.onResponseError(this, error as Error);
    }
  }
}

/** Whose a connection is. */
export type ConnectionOwner = {
  /** It may be asked again, for so long. */
  free(connection: Connection, forMs: number): void;
  gone(connection: Connection): void;
};

/** How long a reply flows, without a pause as long, before its pieces may be gathered. */
const YOUNG_MS = 250;

/** After a read of so many bytes there is more at once: it waits for the next turn of the event loop, so that others have theirs. */
const LARGE_READ = 16 * 1024;

const CONNECTION = Symbol("connection");
type Owned = Socket & { [CONNECTION]?: Connection };

/** Where connections read: all into one place, as each read is taken to its end before the next. */
const READ_INTO = Buffer.allocUnsafeSlow(64 * 1024);
export const onread = {
  buffer: READ_INTO,
  callback(this: Owned, count: number): boolean {
    const connection = this[CONNECTION];
    return connection === undefined || connection.read(READ_INTO, count);
  },
};

function takeEnd(this: Owned): void {
  this[CONNECTION]?.end();
}
function takeError(this: Owned, error: Error): void {
  this[CONNECTION]?.lost(error);
}
function takeClose(this: Owned): void {
  this[CONNECTION]?.lost(new Error("the connection was closed"));
}

/** A connection to a server, with at most one request at a time. */
export class Connection implements AnswerTaker, Holdable {
  readonly #socket: Owned;
  readonly #owner: ConnectionOwner;
  readonly #gathering: Gathering;
  readonly #reader = new AnswerReader(this);
  #asked: Asked | undefined;
  #unsent: { head: string; body: string; bytes: number } | undefined;
  #keepMs = 0;
  #isLost = false;
  /** Why it is not read: who hears it has enough for now, or what comes is gathered. */
  #isPaused = false;
  #isHeld = false;
  /** Of this answer, while pieces are gathered: since when it flows, and since when more of it could be read. */
  #flowsSince = 0;
  #readyAt = 0;

  constructor(socket: Socket, owner: ConnectionOwner, gathering: Gathering) {
    this.#socket = socket;
    this.#owner = owner;
    this.#gathering = gathering;
    this.#socket[CONNECTION] = this;
    socket.on("end", takeEnd).on("error", takeError).on("close", takeClose);
  }

  /** Sends a request, whose body has so many bytes, within this turn of the event loop. */
  send(asked: Asked, head: string, body: string, bytes: number): void {
    this.#asked = asked;
    this.#readyAt = Number.NEGATIVE_INFINITY;
    this.#gathering.begin();
    this.#reader.begin();
    this.#socket.ref();
    asked.sentBy(this);
    this.#unsent = { head, body, bytes };
    sendSoon(this);
  }

  /** Writes what it has to send. */
  flush(): void {
    const unsent = this.#unsent;
    this.#unsent = undefined;
    if (!unsent || this.#isLost) return;
    const { head, body, bytes } = unsent;
    const socket = this.#socket;
    // As many bytes as characters: it is ASCII, and one write.
    if (bytes === body.length) socket.write(head + body, "latin1");
    else {
      socket.cork();
      socket.write(head, "latin1");
      socket.write(body);
      socket.uncork();
    }
  }

  /** False: what comes next is to wait until it is released. */
  read(bytes: Buffer, count: number): boolean {
    if (this.#isLost) return true;
    const asked = this.#asked;
    if (!asked || this.#unsent) {
      // What nobody asked for must not become the answer to what somebody asks next, even where that is about to be sent.
      this.destroy();
      return true;
    }
    try {
      if (this.#reader.push(bytes, count) < count) this.#keepMs = 0;
      asked.read();
    } catch (error) {
      this.#drop(error as Error);
      return true;
    }
    if (asked.isOver) this.#free();
    else if (this.#gathering.holdMs > 0 && this.#hold()) return false;
    else if (count >= LARGE_READ) return this.#rest();
    return true;
  }

  end(): void {
    try {
      if (this.#asked) this.#reader.close();
      this.destroy();
    } catch (error) {
      this.#drop(error as Error);
    }
  }

  lost(error: Error): void {
    if (this.#isLost) return;
    this.#isLost = true;
    this.#owner.gone(this);
    if (!this.#asked) return;
    this.#gathering.end();
    this.#asked.fail(error);
  }

  destroy(): void {
    this.#drop(new Error("the connection was left"));
  }

  pause(): void {
    this.#isPaused = true;
    this.#socket.pause();
  }

  resume(): void {
    this.#isPaused = false;
    if (!this.#isHeld) this.#socket.resume();
  }

  release(): void {
    this.#isHeld = false;
    this.#readyAt = this.#gathering.now();
    if (!this.#isPaused && !this.#isLost) this.#socket.resume();
  }

  head(status: number, headers: AnswerHeaders): void {
    this.#asked?.head(status, headers);
  }

  body(bytes: Buffer, from: number, to: number): void {
    this.#asked?.body(bytes, from, to);
  }

  whole(keepMs: number): void {
    this.#keepMs = keepMs;
    this.#asked?.whole();
  }

  #drop(error: Error): void {
    this.lost(error);
    this.#socket.destroy();
  }

  /** Has it wait where its reply has been flowing for a while, and not so slowly that nothing would come meanwhile. */
  #hold(): boolean {
    // Over TLS a read brings several, each by itself.
    if (this.#isHeld) return true;
    const now = this.#gathering.now();
    const waitedMs = now - this.#readyAt;
    this.#readyAt = now;
    if (waitedMs > YOUNG_MS) this.#flowsSince = now;
    if (waitedMs > this.#gathering.holdMs || now - this.#flowsSince < YOUNG_MS) return false;
    this.#isHeld = true;
    this.#gathering.hold(this);
    return true;
  }

  #rest(): false {
    if (!this.#isHeld) setImmediate(() => this.release());
    this.#isHeld = true;
    return false;
  }

  /** After the whole read, as more may have come with it than the answer. */
  #free(): void {
    if (this.#isLost) return;
    this.#asked = undefined;
    this.#gathering.end();
    // A server that answers before it has read the request may never read the rest.
    if (this.#keepMs === 0 || this.#socket.writableLength > 0) this.destroy();
    else {
      this.#socket.unref();
      this.#owner.free(this, this.#keepMs);
    }
  }
}
