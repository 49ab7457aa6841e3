import { setMaxListeners } from "node:events";
import type { Duplex } from "node:stream";
import type { WebSocket } from "ws";
import { textOfUtf8 } from "#kit/utf8.ts";
import type { RpcDispatch } from "#wire/rpc/rpc.ts";
import { CLOSE, codeOfFault } from "./close-codes.ts";
import type { PushSink } from "./stream-reader.ts";
import type { Subscriber } from "./subscriber.ts";
import { type ExchangeParts, SocketExchange } from "./ws-exchange.ts";
import { PING_FRAME, pongFrame, textFrame } from "./ws-frames.ts";
import type { Writer } from "./ws-writer.ts";

/** Calls of one connection that may be under way at once; what comes past them waits, and then is not read. */
const CALLS_UNDER_WAY = 256;
/** So many of them are begun in one turn of the event loop: only then can be seen how large their answers are. */
const CALLS_AT_ONCE = 64;
/** A connection that lets so much pile up is not sent what happens: that waits in the store. */
const FULL_BYTES = 1024 * 1024;
/** What waited in the store is sent as long as less than this waits in the connection. */
const CATCH_UP_BYTES = 256 * 1024;
/** Below this a connection has room again. */
const ROOM_BYTES = 128 * 1024;
const MISSED_PINGS = 2;
/** How long a client that closes is kept for the answers to what it has asked. */
const LAST_ANSWERS_MS = 5_000;

/** What is kept of the request that it came with. */
export type Origin = { requestId: string; address: string; network: string; headers: string; servedAt: string };

export type ConnectionParts = ExchangeParts & {
  dispatch: RpcDispatch;
  writer: Writer;
  onGone(connection: Connection): void;
  /** Something is kept back: to be looked at as long as it is. */
  onHeld(connection: Connection): void;
};

/** Whose token it came with. A reload may take it away, or change what it may do. */
export type TokenUse = { caller: ExchangeCaller; readonly connections: Set<Connection> };
type ExchangeCaller = SocketExchange["caller"];

type Close = WebSocket["close"];
type Linked = WebSocket & { connection: Connection; _socket: Duplex; close: Close };

/**
 * One WebSocket. What it holds while it is idle is all here, as there may be ten thousand: what calls and subscriptions need is made
 * when they come.
 */
export class Connection implements PushSink {
  readonly parts: ConnectionParts;
  readonly token: TokenUse;
  readonly origin: Origin;
  readonly since: number;
  subscriber: Subscriber | undefined = undefined;
  /** The code that it was closed with from here. */
  closing = 0;
  /** Since when something has been kept back from it, in monotonic milliseconds. */
  heldSince = 0;
  readonly #ws: WebSocket;
  readonly #socket: Duplex;
  #out = "";
  #isWriting = false;
  #calls = 0;
  #begun = 0;
  #missed = 0;
  #isAwaitingDrain = false;
  #waiting: string[] | undefined = undefined;
  #gone: AbortController | undefined = undefined;
  /** Closes it as its client has asked for. */
  #leave: (() => void) | undefined = undefined;

  constructor(ws: WebSocket, parts: ConnectionParts, token: TokenUse, origin: Origin) {
    this.parts = parts;
    this.token = token;
    this.origin = origin;
    this.since = parts.clock.monotonic();
    this.#ws = ws;
    const linked = ws as Linked;
    this.#socket = linked._socket;
    linked.connection = this;
    linked.close = closeInTime;
    ws.on("message", onMessage);
    ws.on("ping", onPing);
    ws.on("pong", onPong);
    ws.on("error", onError);
    ws.on("close", onClose);
  }

  get isOpen(): boolean {
    return this.#ws.readyState === this.#ws.OPEN;
  }

  get isIdle(): boolean {
    return this.#calls === 0;
  }

  get isFull(): boolean {
    return this.#buffered >= FULL_BYTES;
  }

  get hasRoom(): boolean {
    return this.#buffered < CATCH_UP_BYTES;
  }

  get #buffered(): number {
    return this.#out.length + this.#socket.writableLength;
  }

  /** Aborts when the connection has gone. */
  get signal(): AbortSignal {
    if (!this.#gone) {
      this.#gone = new AbortController();
      // A listener for each call that waits is no leak.
      setMaxListeners(0, this.#gone.signal);
      if (!this.isOpen) this.#gone.abort();
    }
    return this.#gone.signal;
  }

  push(frame: string): void {
    if (!this.isOpen) return;
    this.#out += frame;
    this.#writeSoon();
  }

  #writeSoon(): void {
    if (this.#isWriting) return;
    this.#isWriting = true;
    this.parts.writer.add(this);
  }

  /** Writes what was pushed in this turn of the event loop. */
  write(): void {
    this.#isWriting = false;
    this.#begun = 0;
    const out = this.#out;
    this.#out = "";
    if (!this.isOpen) return;
    if (out !== "") this.#socket.write(out, "latin1");
    if (this.heldSince !== 0) this.#lookForRoom();
    else if (this.#buffered >= FULL_BYTES) this.hold();
    else if (this.#waiting) this.#goOn();
  }

  /** Until what waits here has gone, its calls wait too. */
  hold(): void {
    if (this.heldSince !== 0 || !this.isOpen) return;
    this.heldSince = this.parts.clock.monotonic();
    this.parts.onHeld(this);
    this.#ws.pause();
    this.#awaitDrain();
  }

  /** Tells it to try later, and ends it when it does not take even that. */
  cut(): void {
    if (!this.isOpen) return;
    this.parts.events.socketCut({ requestId: this.origin.requestId, caller: this.token.caller.name });
    this.close(CLOSE.tooSlow, "too slow: go on by your cursors");
  }

  close(code: number, reason: string): void {
    if (!this.isOpen) return;
    this.write();
    this.closing = code;
    this.#ws.close(code, reason);
    // The other side's answer has to be read.
    this.#ws.resume();
    this.#gone?.abort();
  }

  /** Its client has sent its close: what was asked is answered first, and what was not begun is not carried out. */
  leave(close: () => void): void {
    this.#waiting = undefined;
    this.write();
    if (this.closing !== 0 || this.#calls === 0) return void close();
    this.#leave = close;
    this.parts.clock.after(LAST_ANSWERS_MS, close);
  }

  /** Ends it without a word. */
  terminate(): void {
    this.#ws.terminate();
  }

  /** Asks whether somebody is there; one that has not answered twice is not. */
  ping(): void {
    if (!this.isOpen) return;
    // Of one that is not read from no answer can come.
    if (!this.#ws.isPaused && this.#missed++ >= MISSED_PINGS) {
      this.closing = CLOSE.unanswered;
      this.terminate();
      return;
    }
    this.#socket.write(PING_FRAME, "latin1");
  }

  pong(payload: Buffer): void {
    this.#missed = 0;
    this.push(pongFrame(payload));
  }

  heard(): void {
    this.#missed = 0;
  }

  take(data: Buffer, isBinary: boolean): void {
    this.#missed = 0;
    if (!this.isOpen) return;
    if (isBinary) {
      this.close(CLOSE.notText, "text frames only");
      return;
    }
    const text = textOfUtf8(data);
    if (this.#isBusy) {
      this.#waiting ??= [];
      this.#waiting.push(text);
      this.#ws.pause();
    } else this.#call(text);
  }

  gone(): void {
    this.#out = "";
    this.#waiting = undefined;
    this.#gone?.abort();
    this.parts.onGone(this);
  }

  get #isBusy(): boolean {
    if (this.#calls >= CALLS_UNDER_WAY || this.#begun >= CALLS_AT_ONCE) return true;
    return this.heldSince !== 0 || this.#waiting !== undefined || this.#out.length >= FULL_BYTES;
  }

  #call(text: string): void {
    const exchange = new SocketExchange(this, text);
    const answer = this.parts.dispatch(text, exchange);
    if (!(answer instanceof Promise)) {
      this.#answer(exchange, answer);
      return;
    }
    this.#calls++;
    if (++this.#begun >= CALLS_AT_ONCE) this.#writeSoon();
    answer.then(
      (said) => this.#answerLate(exchange, said),
      (error: unknown) => {
        this.parts.events.unexpectedError({ error, requestId: exchange.requestId });
        this.#answerLate(exchange, undefined);
      },
    );
  }

  #answer(exchange: SocketExchange, said: string | undefined): void {
    if (said !== undefined) this.push(textFrame(said));
    exchange.end();
  }

  #answerLate(exchange: SocketExchange, said: string | undefined): void {
    this.#calls--;
    this.#answer(exchange, said);
    if (this.#waiting) this.#goOn();
    if (this.#calls > 0) return;
    if (this.#leave) {
      this.write();
      this.#leave();
    }
    this.parts.onIdle(this);
  }

  #awaitDrain(): void {
    if (this.#isAwaitingDrain) return;
    this.#isAwaitingDrain = true;
    this.#socket.once("drain", () => {
      this.#isAwaitingDrain = false;
      this.#lookForRoom();
    });
  }

  #lookForRoom(): void {
    if (this.heldSince === 0) return;
    if (this.#buffered >= ROOM_BYTES) {
      this.#awaitDrain();
      return;
    }
    this.heldSince = 0;
    if (!this.isOpen) return;
    this.subscriber?.pumpSoon();
    this.#goOn();
  }

  /** Takes up what waited, and then reads on. */
  #goOn(): void {
    const waiting = this.#waiting ?? [];
    this.#waiting = undefined;
    for (const [n, text] of waiting.entries()) {
      if (this.#isBusy) {
        this.#waiting = waiting.slice(n);
        return;
      }
      this.#call(text);
    }
    this.#ws.resume();
  }
}

/** `ws` calls it for a close that has come, too. */
function closeInTime(this: WebSocket, ...how: Parameters<Close>): void {
  (this as Linked).connection.leave(() => Object.getPrototypeOf(this).close.apply(this, how));
}
function onMessage(this: WebSocket, data: unknown, isBinary: boolean): void {
  (this as Linked).connection.take(data as Buffer, isBinary);
}
function onPing(this: WebSocket, payload: Buffer): void {
  (this as Linked).connection.pong(payload);
}
function onPong(this: WebSocket): void {
  (this as Linked).connection.heard();
}
/** `ws` answers a broken frame with the code that says so. */
function onError(this: WebSocket, error: Error & { code?: string }): void {
  (this as Linked).connection.closing ||= codeOfFault(error.code);
}
function onClose(this: WebSocket): void {
  (this as Linked).connection.gone();
}
