import { setMaxListeners } from "node:events";
import type { Duplex } from "node:stream";
import type { Clock } from "#kit/clock.ts";
import { newId } from "#kit/ids.ts";
import { sendAtTickEnd } from "#kit/tick-end.ts";
import { textOfUtf8 } from "#kit/utf8.ts";
import type { Events } from "#observe/events.ts";
import type { Delivery } from "#store/store.ts";
import { Outcome } from "#wire/call/access-line.ts";
import { deliveryOf } from "#wire/call/delivery.ts";
import type { Refusals } from "#wire/call/refusals.ts";
import type { RpcCaller, RpcDispatch, RpcExchange } from "#wire/rpc/rpc.ts";
import { type Frame, joinFrames, textFrame } from "./frame.ts";
import type { ServerSocket } from "./server-socket.ts";
import type { PendingCall } from "./streams.ts";
import type { Subscriber } from "./subscriber.ts";
import type { Subscribing, Subscriptions } from "./subscriptions.ts";

/** The codes that the gateway closes a WebSocket with. docs/websocket.md explains each to the other side. */
export const CLOSE = {
  notText: 1003,
  /** Never sent: nobody was there to read it. */
  unanswered: 1006,
  restart: 1012,
  tooSlow: 1013,
  tokenRevoked: 4401,
  permissionRevoked: 4403,
} as const;

/** Calls of one connection that may be under way at once. Further ones wait, and then the connection is not read. */
const CALLS_UNDER_WAY = 256;
/** Calls that begin in one turn of the event loop: the size of their answers shows only after it. */
const CALLS_AT_ONCE = 64;
/** The unsent bytes from which a connection gets no more news: they wait in the store. */
const FULL_BYTES = 1024 * 1024;
/** News that waited in the store are sent as long as less than this is unsent. */
const CATCH_UP_BYTES = 256 * 1024;
/** Below this a connection has room again. */
const ROOM_BYTES = 128 * 1024;
const MISSED_PINGS = 2;
/** The time that a connection that is to close is kept for the answers to its calls. */
const LAST_ANSWERS_MS = 5_000;

export type ConnectionParts = {
  /** Over the methods of the API and the two that are a socket's own: see `withSocketCalls`. */
  dispatch: RpcDispatch;
  subscriptions: Subscriptions;
  clock: Clock;
  events: Events;
  recordBodies(): boolean;
  refusals: Refusals;
  onClosed(connection: Connection): void;
  /** Its last call was answered. */
  onIdle(connection: Connection): void;
};

/** The facts that are kept of the request to upgrade. */
type Origin = {
  requestId: string;
  /** The hash of the token that it came with. A reload may take the token away, or change its permissions. */
  tokenHash: Buffer;
  address: string;
  network: string;
  headers: string;
  hops: number;
  servedAt: string;
};

/** One WebSocket. There may be ten thousand idle ones: the parts for calls and subscriptions are made when these come. */
export class Connection implements Subscribing {
  readonly parts: ConnectionParts;
  readonly origin: Origin;
  readonly since: number;
  caller: RpcCaller;
  subscriber: Subscriber | undefined = undefined;
  /** The code that it was closed with from here. */
  closing = 0;
  /** The time since which something is kept back from it, in monotonic milliseconds; 0 if nothing is. */
  heldSince = 0;
  pingAt = 0;
  readonly #ws: ServerSocket;
  readonly #socket: Duplex;
  #unsent: Frame[] = [];
  #unsentBytes = 0;
  #callsUnderWay = 0;
  #callsBegun = 0;
  #missedPings = 0;
  #waiting: string[] = [];
  #closed: AbortController | undefined = undefined;
  /** Closes it once the calls that have begun are answered. Nothing more is read until then. */
  #closeWhenIdle: (() => void) | undefined = undefined;

  constructor(ws: ServerSocket, socket: Duplex, parts: ConnectionParts, caller: RpcCaller, origin: Origin) {
    this.parts = parts;
    this.caller = caller;
    this.origin = origin;
    this.since = parts.clock.monotonic();
    this.#ws = ws;
    this.#socket = socket;
    ws.onClosing = (close) =>
      this.#closeAfterAnswers(() => {
        this.#send();
        close();
      });
    ws.on("message", (data, isBinary) => this.#receive(data as Buffer, isBinary));
    ws.on("ping", () => this.#noteLife());
    ws.on("pong", () => this.#noteLife());
    ws.on("error", (error: Error & { code?: string }) => {
      this.closing ||= codeOfFault(error.code);
    });
    ws.on("close", () => {
      this.#waiting = [];
      this.#closed?.abort();
      parts.onClosed(this);
    });
    socket.on("drain", () => this.#checkRoom());
  }

  get isOpen(): boolean {
    return this.#ws.readyState === this.#ws.OPEN;
  }

  get isIdle(): boolean {
    return this.#callsUnderWay === 0;
  }

  get isFull(): boolean {
    return this.#waitingBytes >= FULL_BYTES;
  }

  get hasRoom(): boolean {
    return this.#waitingBytes < CATCH_UP_BYTES;
  }

  /** Aborts when the connection has gone. */
  get signal(): AbortSignal {
    if (!this.#closed) {
      this.#closed = new AbortController();
      // A listener for each call that waits is no leak.
      setMaxListeners(0, this.#closed.signal);
      if (!this.isOpen) this.#closed.abort();
    }
    return this.#closed.signal;
  }

  /** The bytes that the system has not taken yet. */
  get #waitingBytes(): number {
    return this.#socket.writableLength + this.#unsentBytes;
  }

  push(frame: Frame): void {
    if (!this.isOpen) return;
    this.#unsent.push(frame);
    this.#unsentBytes += frame.length;
    sendAtTickEnd(this.#endTick);
  }

  /** All messages of one tick of the event loop leave in one write, as a write costs more than most answers. */
  readonly #endTick = (): void => {
    this.#callsBegun = 0;
    if (this.isOpen) this.#send();
    if (this.heldSince !== 0) this.#checkRoom();
    else if (this.isFull) this.hold();
    else this.#beginWaiting();
  };

  /** `ws` has nothing of its own to send but whole control frames. */
  #send(): void {
    const frames = this.#unsent;
    if (frames.length === 0) return;
    this.#unsent = [];
    this.#unsentBytes = 0;
    this.#socket.write(joinFrames(frames));
  }

  /** Its calls wait until the unsent data has gone. */
  hold(): void {
    if (this.heldSince !== 0 || !this.isOpen) return;
    this.heldSince = this.parts.clock.monotonic();
    this.#ws.pause();
  }

  /** Tells it to try later, and ends it when it does not take even that. */
  cut(): void {
    if (!this.isOpen) return;
    this.parts.events.socketCut({ requestId: this.origin.requestId, caller: this.caller.name });
    this.close(CLOSE.tooSlow, "too slow: resume with your cursors");
  }

  close(code: number, reason: string): void {
    if (!this.isOpen) return;
    this.closing = code;
    this.#ws.close(code, reason);
    // The other side's answer has to be read.
    this.#ws.resume();
    this.#closed?.abort();
  }

  /** Ends it without a word. */
  terminate(): void {
    this.#ws.terminate();
  }

  /** Asks the client for a sign of life; a client that has not answered twice is gone. */
  ping(): void {
    if (!this.isOpen) return;
    // A connection that is not read from cannot answer.
    if (!this.#ws.isPaused && this.#missedPings++ >= MISSED_PINGS) {
      this.closing = CLOSE.unanswered;
      this.terminate();
      return;
    }
    this.#ws.ping();
  }

  /** Also checks the unsent bytes: a client may ask for answers to its pings without reading them. */
  #noteLife(): void {
    this.#missedPings = 0;
    if (this.isOpen) sendAtTickEnd(this.#endTick);
  }

  /** Calls that have not begun are not carried out. */
  #closeAfterAnswers(close: () => void): void {
    this.#waiting = [];
    if (this.closing !== 0 || this.isIdle) {
      close();
      return;
    }
    this.#closeWhenIdle = close;
    this.parts.clock.after(LAST_ANSWERS_MS, close);
  }

  #receive(data: Buffer, isBinary: boolean): void {
    this.#missedPings = 0;
    if (!this.isOpen || this.#closeWhenIdle) return;
    if (isBinary) {
      this.#closeAfterAnswers(() => this.close(CLOSE.notText, "text frames only"));
      return;
    }
    this.#waiting.push(textOfUtf8(data));
    this.#beginWaiting();
  }

  get #isBusy(): boolean {
    const isFullOfCalls = this.#callsUnderWay >= CALLS_UNDER_WAY || this.#callsBegun >= CALLS_AT_ONCE;
    return isFullOfCalls || this.heldSince !== 0 || this.isFull;
  }

  /** Begins the calls that wait, as far as there is room for their answers. No more is read while some are left. */
  #beginWaiting(): void {
    if (this.heldSince !== 0) return;
    let begun = 0;
    while (begun < this.#waiting.length && !this.#isBusy) void this.#answer(this.#waiting[begun++] as string);
    if (begun > 0) this.#waiting.splice(0, begun);
    if (this.#waiting.length > 0) this.#ws.pause();
    else if (this.#ws.isPaused) this.#ws.resume();
  }

  async #answer(text: string): Promise<void> {
    const exchange = new SocketExchange(this, text);
    this.#callsUnderWay++;
    if (++this.#callsBegun >= CALLS_AT_ONCE) sendAtTickEnd(this.#endTick);
    try {
      const answer = await this.parts.dispatch(text, exchange);
      if (answer !== undefined) this.push(textFrame(answer));
    } catch (error) {
      this.parts.events.unexpectedError({ error, requestId: exchange.requestId });
    }
    exchange.end();
    this.#callsUnderWay--;
    this.#beginWaiting();
    if (!this.isIdle) return;
    this.#closeWhenIdle?.();
    this.parts.onIdle(this);
  }

  #checkRoom(): void {
    if (this.heldSince === 0 || this.#waitingBytes >= ROOM_BYTES) return;
    this.heldSince = 0;
    if (!this.isOpen) return;
    this.subscriber?.pumpSoon();
    this.#beginWaiting();
  }
}

/** The code that `ws` closes with by itself, by the fault that it names; 0 for an error that is no fault of a frame. */
function codeOfFault(fault = ""): number {
  return CODES[fault] ?? (fault.startsWith("WS_ERR_") ? BROKEN_FRAME : 0);
}

const BROKEN_FRAME = 1002;
const CODES: Record<string, number> = {
  WS_ERR_INVALID_UTF8: 1007,
  WS_ERR_TOO_MANY_BUFFERED_PARTS: 1008,
  WS_ERR_UNSUPPORTED_MESSAGE_LENGTH: 1009,
  WS_ERR_UNSUPPORTED_DATA_PAYLOAD_LENGTH: 1009,
};

/** One text's exchange with the dispatcher. A part that a call seldom needs is made when it asks. */
export class SocketExchange implements RpcExchange, PendingCall {
  readonly connection: Connection;
  readonly caller: RpcCaller;
  readonly idempotencyKey = undefined;
  readonly outcome: Readonly<Outcome> = new Outcome();
  readonly text: string;
  readonly #began: number;
  #requestId: string | undefined = undefined;
  #after: Frame[] = [];
  #isAnswered = false;

  constructor(connection: Connection, text: string) {
    this.connection = connection;
    this.caller = connection.caller;
    this.text = text;
    this.#began = connection.parts.clock.monotonic();
  }

  get callerName(): string {
    return this.caller.name;
  }

  servedAt(): string {
    return this.connection.origin.servedAt;
  }

  get hops(): number {
    return this.connection.origin.hops;
  }

  get requestId(): string {
    this.#requestId ??= newId("req", this.connection.parts.clock.now());
    return this.#requestId;
  }

  signal(): AbortSignal {
    return this.connection.signal;
  }

  get follow(): NonNullable<RpcExchange["follow"]> {
    return (turn, options) => this.connection.parts.subscriptions.follow(this.connection, this, turn, options);
  }

  delivery(operation: string, entry: string | undefined): Delivery {
    const { parts, origin } = this.connection;
    const { address, headers } = origin;
    const place = { surface: "rpc", operation, method: "WS", path: "/rpc/ws" } as const;
    const request = { ...place, address, headers, requestId: this.requestId, senderId: undefined };
    const body = Buffer.from(entry ?? this.text);
    const given = { now: parts.clock.now(), caller: this.caller.name, body, keepBody: parts.recordBodies() };
    return deliveryOf(request, given, entry !== undefined);
  }

  pushAfterAnswer(frame: Frame): void {
    if (this.#isAnswered) this.connection.push(frame);
    else this.#after.push(frame);
  }

  /** It was answered, or needs no answer. */
  end(): void {
    this.#isAnswered = true;
    for (const frame of this.#after) this.connection.push(frame);
    const { clock, events, refusals } = this.connection.parts;
    events.socketCallHandled(this, clock.monotonic() - this.#began);
    if (this.outcome.error !== undefined) refusals.noteSocketCall(this, this.connection.origin.network);
  }
}
