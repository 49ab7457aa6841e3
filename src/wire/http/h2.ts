import {
  type IncomingHttpHeaders,
  performServerHandshake,
  type ServerHttp2Session,
  type ServerHttp2Stream,
} from "node:http2";
import type { Socket } from "node:net";
import { Http2Request, Http2Response } from "./h2-messages.ts";
import type { ResetLimit } from "./reset-limit.ts";
import { LEAST_TAKEN } from "./slow-readers.ts";

export type Http2Parts = {
  onRequest: (req: Http2Request, res: Http2Response) => void;
  /** The time in which a new connection must show that it speaks HTTP/2. */
  headersMs: number;
  /** The time in which a request must arrive whole. */
  requestMs: number;
  /** The time that a connection may stay without a request. */
  idleMs: number;
  /** The time after which a connection is closed that reads almost nothing of its waiting data. */
  stuckMs: number;
  /** The time that a connection has for its next request while the listener drains. */
  lastRequestsMs: number;
  /** Counts the requests that an address cancels, on all listeners. */
  resets: ResetLimit;
};

const SETTINGS = {
  enablePush: false,
  maxConcurrentStreams: 256,
  /**
   * A head that is a little too large for the front still gets its 414 or 431. A larger one ends its stream before its values become
   * strings.
   */
  maxHeaderListSize: 24 * 1024,
};
const OPTIONS = {
  settings: SETTINGS,
  /** A head with more ends its stream: each pair costs, and in the client's table many are one byte each. */
  maxHeaderListPairs: 128,
  maxSessionInvalidFrames: 100,
  /** In MiB: past it a connection opens no streams. */
  maxSessionMemory: 16,
};
/**
 * The bytes of a head that are free. Each further 4 KiB on a connection count as a cancelled request: the values of heads are
 * outside V8's heap, which collects them late, and the system does not get their memory back.
 */
const FREE_HEAD = 8 * 1024;
const WIDE_BYTES = 4 * 1024;
/** The bytes that all streams of a connection may send before they are read. Each has its own window of 64 KiB. */
const WINDOW = 1024 * 1024;
const FAREWELL_MS = 1_000;
/** A connection without a request is sent a ping after a second, and closed when that has not left after five. */
const ASK_MS = 1_000;
const ASKED_MS = 5_000;
/** The maximum number of streams of one connection that start in one turn of the event loop. The others wait. A client can open 256 at once. */
const BEGUN_AT_ONCE = 4;
// As RFC 9113 numbers them.
const END_STREAM = 1;
const NO_ERROR = 0;
const ENHANCE_YOUR_CALM = 11;
/** A GOAWAY with this number ends no stream. The number of the last accepted stream is sent later. */
const ANY_STREAM = 2 ** 31 - 1;

/** The connections of one listener that speak HTTP/2. Each request on them is answered as one over HTTP/1.1 would be. */
export function createHttp2(parts: Http2Parts) {
  const connections = new Set<Connection>();
  let drainingSince: number | undefined;
  return {
    /** Takes a socket over, with the bytes that were already read from it. */
    take(socket: Socket, read?: Buffer): void {
      if (socket.destroyed) return;
      // Reading its next frames would cost as much as the flood did.
      if (parts.resets.isReached(socket)) return void socket.destroy();
      if (read) socket.unshift(read);
      const connection = new Connection(socket, parts);
      connections.add(connection);
      socket.once("close", () => connections.delete(connection));
      if (drainingSince !== undefined) connection.announceEnd();
    },
    /** Must be called every second, because connections have no timers. */
    check(): void {
      const now = performance.now();
      const isLast = drainingSince !== undefined && now - drainingSince >= parts.lastRequestsMs;
      for (const connection of connections) connection.check(now, isLast);
    },
    /** Tells every client to open no more streams, and accepts the streams in transit. */
    drain(): void {
      drainingSince ??= performance.now();
      for (const connection of connections) connection.announceEnd();
    },
    /** Ends every connection, and its streams first: their calls then write their access lines while the gateway still logs. */
    destroy(): void {
      for (const connection of connections) connection.destroy();
    },
  };
}

/** A stream whose head has come. */
type Arrived = [stream: ServerHttp2Stream, headers: IncomingHttpHeaders, flags: number, raw: readonly string[]];
type Exchange = { req: Http2Request; stream: ServerHttp2Stream; began: number };

/** One connection: its session and the requests that are open on it. */
class Connection {
  readonly #socket: Socket;
  readonly #session: ServerHttp2Session;
  readonly #parts: Http2Parts;
  readonly #open = new Set<Exchange>();
  readonly #began = performance.now();
  #idleSince = this.#began;
  #endedAt = 0;
  #hasAgreed = false;
  #isPinged = false;
  readonly #waiting: Arrived[] = [];
  #begun = 0;
  #wideBytes = 0;
  #sent = 0;
  #sentAt = this.#began;

  constructor(socket: Socket, parts: Http2Parts) {
    this.#socket = socket;
    this.#parts = parts;
    // A client that ends its side has disconnected: half a connection carries no frames.
    socket.allowHalfOpen = false;
    this.#session = performServerHandshake(socket, OPTIONS);
    this.#session.setLocalWindowSize(WINDOW);
    // The client speaks HTTP/2 and has accepted our limits: until then they do not hold.
    this.#session.once("localSettings", () => {
      this.#hasAgreed = true;
    });
    this.#session.on("error", ignore);
    this.#session.on("stream", this.#take);
    // Node may end a flood before its streams have started. They still count against the client's next connection.
    this.#session.once("close", () => {
      for (const [stream] of this.#waiting.splice(0)) this.#isTakenBack(stream);
    });
  }

  readonly #take = (...arrived: Arrived): void => {
    const [stream, , , raw] = arrived;
    this.#countWide(bytesOf(raw) - FREE_HEAD);
    if (this.#isTakenBack(stream)) return;
    if (this.#begun === 0) setImmediate(this.#beginMore);
    if (this.#begun++ < BEGUN_AT_ONCE) this.#begin(...arrived);
    else {
      stream.on("error", ignore);
      this.#waiting.push(arrived);
    }
  };

  readonly #beginMore = (): void => {
    const due = this.#waiting.splice(0, BEGUN_AT_ONCE);
    this.#begun = due.length;
    if (due.length > 0) setImmediate(this.#beginMore);
    for (const arrived of due) if (!this.#isTakenBack(arrived[0])) this.#begin(...arrived);
  };

  /** True if the client has cancelled the stream before its start. */
  #isTakenBack(stream: ServerHttp2Stream): boolean {
    if (!stream.closed && !stream.destroyed) return false;
    stream.on("error", ignore);
    this.#countReset();
    return true;
  }

  #begin(...[stream, headers, flags, raw]: Arrived): void {
    const req = new Http2Request(stream, headers, raw, (flags & END_STREAM) !== 0);
    const exchange = { req, stream, began: performance.now() };
    this.#open.add(exchange);
    const res = new Http2Response(stream);
    this.#parts.onRequest(req, res);
    // After the listeners of the door.
    stream.once("close", () => {
      this.#open.delete(exchange);
      this.#idleSince = performance.now();
      if (stream.aborted || stream.rstCode !== NO_ERROR) this.#countReset();
    });
  }

  #countWide(bytes: number): void {
    if (bytes <= 0) return;
    this.#wideBytes += bytes;
    for (; this.#wideBytes >= WIDE_BYTES; this.#wideBytes -= WIDE_BYTES) this.#countReset();
  }

  #countReset(): void {
    if (this.#parts.resets.count(this.#socket)) this.#session.destroy(undefined, ENHANCE_YOUR_CALM);
  }

  announceEnd(): void {
    if (!this.#session.closed && !this.#session.destroyed) this.#session.goaway(NO_ERROR, ANY_STREAM);
  }

  destroy(): void {
    this.#session.destroy();
    this.#socket.destroy();
  }

  check(now: number, isLast: boolean): void {
    const { headersMs, idleMs } = this.#parts;
    if (this.#session.destroyed) {
      // Its peer was notified, and has not ended its side.
      this.#endedAt ||= now;
      if (now - this.#endedAt >= FAREWELL_MS) this.#socket.destroy();
      return;
    }
    const idle = this.#open.size === 0 ? now - this.#idleSince : 0;
    if (isLast || idle >= idleMs) this.#session.close();
    if (this.#isDeaf(idle)) this.destroy();
    else if (!this.#hasAgreed && now - this.#began >= headersMs) this.destroy();
    else this.#checkStreams(now);
  }

  /** After a fault of its client Node sends a GOAWAY with an error, then reads and writes no more, and reports nothing. */
  #isDeaf(idle: number): boolean {
    if (idle < ASK_MS) this.#isPinged = false;
    else if (!this.#isPinged) this.#isPinged = this.#session.ping(ignore);
    else return idle >= ASKED_MS && (this.#session.state.outboundQueueSize ?? 0) > 0;
    return false;
  }

  #checkStreams(now: number): void {
    let waits = false;
    for (const { req, stream, began } of this.#open) {
      waits ||= stream.bufferSize > 0 || stream.writableEnded;
      if (!req.complete && now - began >= this.#parts.requestMs) req.fail(new Error("too late"));
    }
    const sent = this.#socket.bytesWritten;
    if (!waits || sent - this.#sent >= LEAST_TAKEN) {
      this.#sent = sent;
      this.#sentAt = now;
    } else if (now - this.#sentAt >= this.#parts.stuckMs) {
      this.destroy();
    }
  }
}

function ignore(): void {}

function bytesOf(raw: readonly string[]): number {
  let bytes = 0;
  for (const text of raw) bytes += text.length;
  return bytes;
}
