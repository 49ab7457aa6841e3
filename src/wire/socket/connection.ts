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
import type { PushSink } from "./pump.ts";
import type { ServerSocket } from "./server-socket.ts";
import type { Subscriber } from "./subscriber.ts";
import type { PendingCall } from "./subscription.ts";

/** The codes with which the gateway closes a WebSocket. docs/websocket.md explains them to clients. */
export const CLOSE = {
  notText: 1003,
  /** Never sent, because the client no longer answers. It is only logged. */
  unanswered: 1006,
  restart: 1012,
  tooSlow: 1013,
  tokenRevoked: 4401,
  permissionRevoked: 4403,
} as const;

/** The most concurrent calls of a connection. Further calls wait, and meanwhile the connection is not read. */
const CALLS_UNDER_WAY = 256;
/** The most calls that start in one tick of the event loop: the size of their answers is known only after it. */
const CALLS_AT_ONCE = 64;
/** From this number of unsent bytes on, a connection gets no more pushes. The entries are read from the store later. */
const FULL_BYTES = 1024 * 1024;
/** Waiting entries are read from the store and sent while fewer bytes than this are unsent. */
const CATCH_UP_BYTES = 256 * 1024;
/** Below this number of unsent bytes, a full connection has room again. */
const ROOM_BYTES = 128 * 1024;
const MISSED_PINGS = 2;
/** The longest time for which a closing connection stays open for the answers to its calls. */
const LAST_ANSWERS_MS = 5_000;

export type ConnectionParts = {
  /** Dispatches the methods of the API and the two methods of WebSockets: see `withSocketCalls`. */
  dispatch: RpcDispatch;
  createSubscriber(sink: PushSink): Subscriber;
  clock: Clock;
  events: Events;
  recordBodies(): boolean;
  refusals: Refusals;
  onClosed(connection: Connection): void;
  /** Called when the last pending call of a connection has been answered. */
  onIdle(connection: Connection): void;
};

/** The stored values of the upgrade request. */
type Origin = {
  requestId: string;
  /** The hash of the token of the upgrade request. A reload of the configuration may remove the token or change its permissions. */
  tokenHash: Buffer;
  address: string;
  network: string;
  headers: string;
  hops: number;
  servedAt: string;
};

/** A WebSocket connection. There may be ten thousand idle ones, so the objects for calls and subscriptions are created only when needed. */
export class Connection implements PushSink {
  readonly parts: ConnectionParts;
  readonly origin: Origin;
  readonly since: number;
  caller: RpcCaller;
  subscriber: Subscriber | undefined = undefined;
  /** The code with which the gateway closed the connection; 0 if it did not. */
  closing = 0;
  /** The monotonic time since which pushes or calls are held back; 0 if none are. */
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
  /** Closes the connection once its running calls have been answered. Until then, nothing is read. */
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
    ws.on("ping", () => this.#recordLife());
    ws.on("pong", () => this.#recordLife());
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

  /** The subscriptions, which are created with the first one. */
  get subscriptions(): Subscriber {
    this.subscriber ??= this.parts.createSubscriber(this);
    return this.subscriber;
  }

  /** Aborted when the connection is closed. */
  get signal(): AbortSignal {
    if (!this.#closed) {
      this.#closed = new AbortController();
      // Each waiting call adds a listener. This is not a leak, so Node must not warn.
      setMaxListeners(0, this.#closed.signal);
      if (!this.isOpen) this.#closed.abort();
    }
    return this.#closed.signal;
  }

  /** The bytes that have not been passed to the operating system. */
  get #waitingBytes(): number {
    return this.#socket.writableLength + this.#unsentBytes;
  }

  push(frame: Frame): void {
    if (!this.isOpen) return;
    this.#unsent.push(frame);
    this.#unsentBytes += frame.length;
    sendAtTickEnd(this.#endTick);
  }

  /** Sends all messages of one tick of the event loop in one write, because writes are expensive. */
  readonly #endTick = (): void => {
    this.#callsBegun = 0;
    if (this.isOpen) this.#send();
    if (this.heldSince !== 0) this.#checkRoom();
    else if (this.isFull) this.hold();
    else this.#beginWaiting();
  };

  /** Writes directly to the socket. This cannot break a frame of `ws`, which sends only complete control frames. */
  #send(): void {
    const frames = this.#unsent;
    if (frames.length === 0) return;
    this.#unsent = [];
    this.#unsentBytes = 0;
    this.#socket.write(joinFrames(frames));
  }

  /** Stops reading calls until the unsent data has been sent. */
  hold(): void {
    if (this.heldSince !== 0 || !this.isOpen) return;
    this.heldSince = this.parts.clock.monotonic();
    this.#ws.pause();
  }

  /** Closes a connection that is too slow. The client may resume with its cursors. */
  closeTooSlow(): void {
    if (!this.isOpen) return;
    this.parts.events.socketCut({ requestId: this.origin.requestId, caller: this.caller.name });
    this.close(CLOSE.tooSlow, "too slow: resume with your cursors");
  }

  close(code: number, reason: string): void {
    if (!this.isOpen) return;
    this.closing = code;
    this.#ws.close(code, reason);
    // The client's close frame must be read.
    this.#ws.resume();
    this.#closed?.abort();
  }

  /** Ends the connection without a close frame. */
  terminate(): void {
    this.#ws.terminate();
  }

  /** Pings the client. Terminates the connection if the last two pings were not answered. */
  ping(): void {
    if (!this.isOpen) return;
    // While the connection is not read, a pong cannot be received.
    if (!this.#ws.isPaused && this.#missedPings++ >= MISSED_PINGS) {
      this.closing = CLOSE.unanswered;
      this.terminate();
      return;
    }
    this.#ws.ping();
  }

  /** Also checks the unsent bytes, because a client may send pings without reading the pongs. */
  #recordLife(): void {
    this.#missedPings = 0;
    if (this.isOpen) sendAtTickEnd(this.#endTick);
  }

  /** Calls `close` once the running calls have been answered, or after `LAST_ANSWERS_MS`. Waiting calls are discarded. */
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

  /** Starts waiting calls while there is room for their answers. If some still wait, the connection is not read. */
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
    this.subscriber?.pump.startSoon();
    this.#beginWaiting();
  }
}

/** The close code that `ws` sends for a protocol error; 0 for other errors. */
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

/** The exchange of one message with the dispatcher. Rarely needed values are created when they are first used. */
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
    return (turn, options) => this.connection.subscriptions.follow(this, turn, options);
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

  /** Called when the answer has been sent, or if none is needed. Sends the pushes that waited for it. */
  end(): void {
    this.#isAnswered = true;
    for (const frame of this.#after) this.connection.push(frame);
    const { clock, events, refusals } = this.connection.parts;
    events.socketCallHandled(this, clock.monotonic() - this.#began);
    if (this.outcome.error !== undefined) refusals.noteSocketCall(this, this.connection.origin.network);
  }
}
