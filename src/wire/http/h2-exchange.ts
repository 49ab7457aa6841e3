import type { IncomingHttpHeaders, ServerHttp2Stream } from "node:http2";
import type { Socket } from "node:net";
import type { RecentHead } from "./h2-recent-head.ts";

type Listener = (...args: never[]) => void;
type Told = () => void;
type Thrown = (error: Error) => void;
type Headers = Record<string, string | number | string[] | undefined>;

/**
 * A request of an HTTP/2 stream, with as much of IncomingMessage as the doors use. Node's own is a stream around the stream, and costs a
 * sixth of the rate.
 */
export class Http2Request {
  readonly httpVersion = "2.0";
  readonly httpVersionMajor = 2;
  readonly method: string;
  url: string;
  readonly headers: IncomingHttpHeaders;
  readonly socket: Socket;
  /** What the names and values of its head take, as one of HTTP/1.1 would be measured. */
  readonly headBytes: number;
  /** The body has come whole. */
  complete: boolean;
  readonly #stream: ServerHttp2Stream;
  readonly #raw: readonly string[];
  readonly #heads: RecentHead;
  readonly #closers: Told[] = [];
  #onEnd: Told | undefined = undefined;
  #onError: Thrown | undefined = undefined;

  constructor(stream: ServerHttp2Stream, { headers, raw, isWhole, socket, heads }: Begun) {
    this.method = headers[":method"] as string;
    this.url = (headers[":path"] as string | undefined) ?? "/";
    this.headers = headers as IncomingHttpHeaders;
    this.socket = socket;
    this.complete = isWhole;
    this.#stream = stream;
    this.#raw = raw;
    this.#heads = heads;
    this.headBytes = bytesOf(raw);
    (stream as Owned)[REQUEST] = this;
    stream._destroy = destroyQuietly;
    stream.on("close", tellClose);
    stream.on("error", ignore);
    headers.host = headers[":authority"] ?? headers.host;
    // Who reads bodies asks whether there is one; only HTTP/1.1 says so in a header.
    if (!isWhole && headers["content-length"] === undefined) headers["transfer-encoding"] = "chunked";
  }

  get rawHeaders(): string[] {
    return this.#heads.namedOf(this.#raw, this.headers.host);
  }

  get destroyed(): boolean {
    return this.#stream.destroyed;
  }

  get readableEnded(): boolean {
    return this.complete || this.#stream.readableEnded;
  }

  /** The stream's own listeners cost what several answers do: for what every request asks, there is one of each kind for all. */
  on(event: string, listener: Listener): this {
    if (event === "error") this.#onError = listener as Thrown;
    else if (event === "close") this.onClose(listener as Told);
    else if (event === "end") this.#onEnd = listener as Told;
    else if (event === "data") this.#read(listener as (part: Buffer) => void);
    else this.#stream.on(event, listener as Told);
    return this;
  }

  #read(listener: (part: Buffer) => void): void {
    let missing = Number(this.headers["content-length"] ?? Infinity);
    this.#stream.on("data", (part: Buffer) => {
      listener(part);
      missing -= part.length;
      // Another listener, and another turn of the loop, would tell nothing new.
      if (missing === 0) this.ended();
    });
    if (missing === Infinity) this.#stream.on("end", tellEnd);
  }

  /** Calls it when the stream has gone, after the listeners that came before it. */
  onClose(listener: Told): void {
    this.#closers.push(listener);
  }

  /** Tells whoever reads the body that it will not come. */
  fail(error: Error): void {
    this.#onError?.(error);
  }

  /** A stream that was cut off ends as one that is whole does. */
  ended(): void {
    if (this.#stream.aborted) return;
    this.complete = true;
    this.#onEnd?.();
  }

  closed(): void {
    for (const listener of this.#closers) listener();
  }

  removeAllListeners(event: "data"): this {
    this.#stream.removeAllListeners(event);
    return this;
  }

  pause(): this {
    this.#stream.pause();
    return this;
  }

  resume(): this {
    this.#stream.resume();
    return this;
  }
}

/** What is known of a request as its stream begins. */
type Begun = { headers: Headers; raw: readonly string[]; isWhole: boolean; socket: Socket; heads: RecentHead };

const REQUEST = Symbol("request");
type Owned = ServerHttp2Stream & {
  [REQUEST]?: Http2Request;
  readonly _writableState: { readonly pendingcb: number; errored: Error | null };
};

function tellEnd(this: Owned): void {
  this[REQUEST]?.ended();
}
function tellClose(this: Owned): void {
  this[REQUEST]?.closed();
}

/** The last write of a stream is told of after its end, and Node makes an error for that, with a stack, which nobody hears of: a tenth of a request. */
function destroyQuietly(this: Owned, error: Error | null, done: (error?: Error | null) => void): void {
  if (!error && this._writableState.pendingcb > 0) this._writableState.errored ??= GONE;
  Object.getPrototypeOf(this)._destroy.call(this, error, done);
}
const GONE = new Error("the stream has gone");
const ignore = (): void => {};

const bytesOf = (raw: readonly string[]): number => {
  let bytes = 0;
  for (const text of raw) bytes += text.length + SEPARATOR;
  return bytes;
};
/** `: ` or a line's end. */
const SEPARATOR = 2;

/** What HTTP/2 has no use for: it has frames of its own for these. */
const isOfConnection = (name: string): boolean => CONNECTION.has(name);
const CONNECTION = new Set(["connection", "keep-alive", "transfer-encoding"]);

/** The reply on an HTTP/2 stream, with as much of ServerResponse as the doors use. */
export class Http2Response {
  statusCode = 200;
  /** Of no effect: a connection that is to end is told so by a frame. */
  shouldKeepAlive = true;
  readonly req: Http2Request;
  readonly #stream: ServerHttp2Stream;
  readonly #endConnection: () => void;
  #set: Headers | undefined = undefined;
  #head: Headers | undefined = undefined;
  #isHeadWritten = false;
  #isEnded = false;

  constructor(stream: ServerHttp2Stream, req: Http2Request, endConnection: () => void) {
    this.#stream = stream;
    this.req = req;
    this.#endConnection = endConnection;
  }

  get headersSent(): boolean {
    return this.#isHeadWritten;
  }

  get destroyed(): boolean {
    return this.#stream.destroyed;
  }

  get writableEnded(): boolean {
    return this.#isEnded;
  }

  get writableFinished(): boolean {
    // Node lets go of a stream that was closed well before it has heard of the last write.
    return (
      this.#isEnded && (this.#stream.writableFinished || (this.#stream.closed && this.#stream.rstCode === NO_ERROR))
    );
  }

  get writableNeedDrain(): boolean {
    return this.#stream.writableNeedDrain;
  }

  get writableLength(): number {
    return this.#stream.writableLength;
  }

  /** `connection: close` lets the streams of the connection finish, and no others begin. */
  setHeader(name: string, value: string | number | string[]): this {
    if (!isOfConnection(name)) {
      this.#set ??= {};
      this.#set[name] = value;
    } else if (value === "close") this.#endConnection();
    return this;
  }

  getHeader(name: string): Headers[string] {
    return this.#set?.[name];
  }

  writeHead(status: number, headers?: Headers): this {
    this.statusCode = status;
    this.#head = headers;
    this.#isHeadWritten = true;
    return this;
  }

  writeContinue(): void {
    if (this.#isOpen()) this.#stream.additionalHeaders({ ":status": 100 });
  }

  flushHeaders(): void {
    this.#isHeadWritten = true;
    if (this.#isOpen() && !this.#stream.headersSent) this.#respond(false);
  }

  write(part: string | Uint8Array): boolean {
    this.flushHeaders();
    return this.#isOpen() ? this.#stream.write(part) : true;
  }

  end(part?: string | Uint8Array): this {
    if (this.#isEnded) return this;
    this.#isEnded = true;
    this.#isHeadWritten = true;
    if (!this.#isOpen()) return this;
    if (!this.req.complete) this.#stream.once("finish", () => this.#refuseRest());
    const isEmpty = part === undefined || part.length === 0 || this.req.method === "HEAD";
    if (!this.#stream.headersSent) this.#respond(isEmpty);
    if (!isEmpty) this.#stream.end(part);
    else if (!this.#stream.writableEnded) this.#stream.end();
    return this;
  }

  /** Cuts the reply off, so that nobody takes it for whole. */
  destroy(): this {
    this.#stream.close(INTERNAL_ERROR);
    return this;
  }

  cork(): void {
    this.#stream.cork();
  }

  uncork(): void {
    this.#stream.uncork();
  }

  once(event: "close" | "drain", listener: Told): this {
    if (event === "close") this.req.onClose(listener);
    else this.#stream.once(event, listener);
    return this;
  }

  #respond(isEmpty: boolean): void {
    const head = { ":status": this.statusCode, ...this.#set, ...this.#head };
    this.#stream.respond(head, isEmpty ? EMPTY : undefined);
  }

  #isOpen(): boolean {
    return !this.#stream.closed && !this.#stream.destroyed;
  }

  /** The reply is out: what is still to come of the request is for nobody. */
  #refuseRest(): void {
    if (!this.req.complete) this.#stream.close(NO_ERROR);
  }
}

const EMPTY = { endStream: true };
// As RFC 9113 numbers them; to ask Node for them would load its HTTP/2 for everybody.
const NO_ERROR = 0;
const INTERNAL_ERROR = 2;
