import type { Socket } from "node:net";
import { Http1Request, Http1Response } from "./h1-exchange.ts";
import { HeadMemory } from "./h1-head.ts";

export type Http1Parts = {
  onRequest: (req: Http1Request, res: Http1Response) => void;
  /** Node's own HTTP/1.1: takes a connection over for good. What was read of it follows as `data`. */
  node: (socket: Socket) => void;
  /** How long a connection may stay without a request. */
  idleMs: number;
};

/**
 * The connections of HTTP/1.1 on which nothing but plain requests came so far: each whole in one read, after the answer to the one before
 * it. That is what most clients send, and Node's own parser and streams cost more than all the gateway does with it. With the first
 * byte of anything else the connection is Node's, for good: no request is ever judged by two parsers.
 */
export const createHttp1 = (parts: Http1Parts) => {
  const connections = new Set<Connection>();
  return {
    take(socket: Socket): void {
      new Connection(socket, parts, connections);
    },
    /** To be called every second, as no connection has a timer of its own. */
    check(): void {
      const now = performance.now();
      for (const connection of connections) connection.check(now - parts.idleMs, now - LINGER_MS);
    },
    /** Ends those that wait for nothing since `before`. */
    endIdle(before: number): void {
      for (const connection of connections) connection.check(before, before);
    },
  };
};

/** How long a client may take to end its half of a connection whose last answer it has. What it still sends is not looked at. */
const LINGER_MS = 1_000;
/** So much is taken of what a client sends ahead: as long as it is read from, it is heard of when it leaves. */
const MOST_HELD = 4_096;

const CONNECTION = Symbol("connection");
type Owned = Socket & { [CONNECTION]?: Connection | undefined };

function takeData(this: Owned, bytes: Buffer): void {
  this[CONNECTION]?.read(bytes);
}
function takeEnd(this: Owned): void {
  this[CONNECTION]?.end();
}
function takeError(this: Owned): void {
  this.destroy();
}
function takeClose(this: Owned): void {
  this[CONNECTION]?.lost();
}

class Connection {
  readonly #socket: Owned;
  readonly #parts: Http1Parts;
  readonly #all: Set<Connection>;
  readonly #heads = new HeadMemory();
  /** The answer that is under way. */
  #answering: Http1Response | undefined = undefined;
  /** What came meanwhile. */
  #held: Buffer | undefined = undefined;
  /** Since when it waits for a request; or, when it has ended, for the other side to end, too. */
  #idleSince = performance.now();
  #hasEnded = false;

  constructor(socket: Socket, parts: Http1Parts, all: Set<Connection>) {
    this.#socket = socket;
    this.#parts = parts;
    this.#all = all;
    all.add(this);
    this.#socket[CONNECTION] = this;
    socket.on("data", takeData).on("end", takeEnd).on("error", takeError).on("close", takeClose);
  }

  read(bytes: Buffer): void {
    // To what comes after the end there is no answer: it must not do anything.
    if (this.#hasEnded) return;
    if (this.#answering) {
      this.#hold(bytes);
      return;
    }
    const head = this.#heads.read(bytes);
    if (!head || bytes.length !== head.end + head.length) {
      this.#handOver(bytes);
      return;
    }
    const req = new Http1Request(this.#socket, head, bytes.subarray(head.end));
    const res = new Http1Response(this.#socket, req, this);
    this.#answering = res;
    this.#parts.onRequest(req, res);
  }

  /** The answer is out. */
  answered(keepAlive: boolean): void {
    this.#answering = undefined;
    this.#idleSince = performance.now();
    const held = this.#held;
    this.#held = undefined;
    if (held) this.#socket.resume();
    if (!keepAlive) this.end();
    else if (held && !this.#socket.destroyed) this.read(held);
  }

  /** Nothing more is answered here; what has been, still goes out. */
  end(): void {
    this.#hasEnded = true;
    this.#socket.end();
  }

  lost(): void {
    this.#all.delete(this);
    this.#answering?.lost();
  }

  /** Lets go of what waits for a request since `idleBefore`, or for its end since `endedBefore`. */
  check(idleBefore: number, endedBefore: number): void {
    if (!this.#answering && this.#idleSince <= (this.#hasEnded ? endedBefore : idleBefore)) this.#socket.destroy();
  }

  #hold(bytes: Buffer): void {
    this.#held = this.#held ? Buffer.concat([this.#held, bytes]) : bytes;
    if (this.#held.length > MOST_HELD) this.#socket.pause();
  }

  #handOver(bytes: Buffer): void {
    const socket = this.#socket;
    this.#all.delete(this);
    socket[CONNECTION] = undefined;
    socket.off("data", takeData).off("end", takeEnd).off("error", takeError).off("close", takeClose);
    this.#parts.node(socket);
    socket.emit("data", bytes);
  }
}
