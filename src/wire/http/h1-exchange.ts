import { type IncomingHttpHeaders, STATUS_CODES } from "node:http";
import type { Socket } from "node:net";
import type { Head } from "./h1-head.ts";

type Told = () => void;
type Listener = (...args: never[]) => void;
type Headers = Record<string, string | number | string[] | undefined>;

/** A request that came whole, in one read, with as much of IncomingMessage as the doors use. */
export class Http1Request {
  readonly httpVersion = "1.1";
  readonly httpVersionMajor = 1;
  readonly complete = true;
  readonly readableEnded = true;
  readonly method: string;
  url: string;
  readonly headers: IncomingHttpHeaders;
  readonly rawHeaders: string[];
  readonly socket: Socket;
  /** The body: it is there, until it is let go. */
  whole: Buffer;

  constructor(socket: Socket, { method, url, headers, rawHeaders }: Head, whole: Buffer) {
    this.method = method;
    this.url = url;
    this.headers = headers;
    this.rawHeaders = rawHeaders;
    this.socket = socket;
    this.whole = whole;
  }

  get destroyed(): boolean {
    return this.socket.destroyed;
  }

  /** Nothing comes any more that somebody could be told of: who reads the body takes `whole`. */
  on(_event: string, _listener: Listener): this {
    return this;
  }
}

/** What the connection is told of its answer. */
export type AnswerWatcher = { answered(keepAlive: boolean): void };

/** The answer to it, with as much of ServerResponse as the doors use. */
export class Http1Response {
  statusCode = 200;
  shouldKeepAlive = true;
  headersSent = false;
  writableEnded = false;
  /** Handed to the system to the last byte. */
  writableFinished = false;
  destroyed = false;
  readonly req: Http1Request;
  readonly #socket: Socket;
  readonly #watcher: AnswerWatcher;
  #set: Headers | undefined = undefined;
  #head: Headers | undefined = undefined;
  #isHeadOut = false;
  #onClose: Told | undefined = undefined;

  constructor(socket: Socket, req: Http1Request, watcher: AnswerWatcher) {
    this.#socket = socket;
    this.req = req;
    this.#watcher = watcher;
  }

  /** Somebody else's, once the answer is out. */
  get socket(): Socket | null {
    return this.writableFinished ? null : this.#socket;
  }

  get writableNeedDrain(): boolean {
    return this.#socket.writableNeedDrain;
  }

  get writableLength(): number {
    return this.#socket.writableLength;
  }

  setHeader(name: string, value: string | number | string[]): this {
    if (name === "connection") this.shouldKeepAlive = value !== "close";
    else {
      this.#set ??= {};
      this.#set[name] = value;
    }
    return this;
  }

  getHeader(name: string): Headers[string] {
    return this.#set?.[name];
  }

  writeHead(status: number, headers?: Headers): this {
    this.statusCode = status;
    this.#head = headers;
    this.headersSent = true;
    return this;
  }

  /** Its body came unasked. */
  writeContinue(): void {}

  flushHeaders(): void {
    if (this.#isHeadOut || this.writableEnded || !this.#hasReader) return;
    this.#socket.write(`${this.#headText()}Transfer-Encoding: chunked\r\n\r\n`, "latin1");
    this.headersSent = true;
    this.#isHeadOut = true;
  }

  /** `encoding` as Node has it: "latin1" where a text is known to be ASCII saves looking at it. */
  write(part: string | Uint8Array, encoding?: BufferEncoding): boolean {
    this.flushHeaders();
    if (this.writableEnded || !this.#hasReader || part.length === 0) return true;
    if (typeof part === "string") return this.#writeChunk(part, "", encoding);
    this.#socket.cork();
    this.#socket.write(`${part.length.toString(16)}\r\n`, "latin1");
    this.#socket.write(part);
    const isTaken = this.#socket.write("\r\n", "latin1");
    this.#socket.uncork();
    return isTaken;
  }

  /** One whose head cannot be written throws, and has not ended. */
  end(part?: string | Uint8Array): this {
    if (this.writableEnded) return this;
    const hasReader = this.#hasReader;
    if (hasReader) {
      if (this.#isHeadOut) this.#endChunks(part);
      else this.#endWhole(part ?? "");
    }
    this.writableEnded = true;
    this.headersSent = true;
    // Of an answer that nobody takes the connection tells as it closes, as of one that is not taken to its end.
    if (!hasReader) return this;
    if (this.#socket.writableLength === 0) this.#finish();
    else this.#socket.write("", (error) => error ?? this.#finish());
    return this;
  }

  destroy(): this {
    if (this.writableFinished) return this;
    this.destroyed = true;
    this.#socket.destroy();
    return this;
  }

  cork(): void {
    this.#socket.cork();
  }

  uncork(): void {
    this.#socket.uncork();
  }

  once(event: "close" | "drain", listener: Told): this {
    if (event === "drain") this.#socket.once(event, listener);
    else if (this.#onClose === undefined) this.#onClose = listener;
    else {
      const first = this.#onClose;
      this.#onClose = () => {
        first();
        listener();
      };
    }
    return this;
  }

  /** The connection has gone. */
  lost(): void {
    this.destroyed = true;
    if (!this.writableFinished) this.#onClose?.();
  }

  get #hasReader(): boolean {
    return !this.destroyed && this.#socket.writable;
  }

  #endChunks(part: string | Uint8Array | undefined): void {
    if (typeof part === "string" && part !== "") this.#writeChunk(part, LAST_CHUNK);
    else {
      if (part !== undefined) this.write(part);
      this.#socket.write(LAST_CHUNK, "latin1");
    }
  }

  /** In one write: each costs as much as making what it writes. */
  #writeChunk(part: string, end: string, encoding?: BufferEncoding): boolean {
    const bytes = encoding === "latin1" ? part.length : Buffer.byteLength(part);
    const text = sizeLine(bytes) + part + (end === "" ? "\r\n" : `\r\n${end}`);
    return this.#socket.write(text, bytes === part.length ? "latin1" : "utf8");
  }

  #endWhole(part: string | Uint8Array): void {
    const hasBody = this.statusCode !== 204 && this.statusCode !== 304;
    const bytes = Buffer.byteLength(part);
    const isSaid = this.#head?.["content-length"] !== undefined || this.#set?.["content-length"] !== undefined;
    const head = hasBody && !isSaid ? `${this.#headText()}content-length: ${bytes}\r\n\r\n` : `${this.#headText()}\r\n`;
    if (!hasBody || bytes === 0) this.#socket.write(head, "latin1");
    // As many bytes as characters: it is ASCII, and one write.
    else if (typeof part === "string") this.#socket.write(head + part, bytes === part.length ? "latin1" : "utf8");
    else {
      this.#socket.cork();
      this.#socket.write(head, "latin1");
      this.#socket.write(part);
      this.#socket.uncork();
    }
  }

  #headText(): string {
    const { statusCode } = this;
    let text = statusCode === 200 ? OK : `HTTP/1.1 ${statusCode} ${STATUS_CODES[statusCode] ?? ""}\r\n`;
    if (this.#set) text += linesOf(this.#set, this.#head);
    if (this.#head) text += linesOf(this.#head, undefined);
    return text + (this.shouldKeepAlive ? keptAlive() : closed());
  }

  #finish(): void {
    if (this.writableFinished || this.destroyed) return;
    this.writableFinished = true;
    this.#onClose?.();
    this.#watcher.answered(this.shouldKeepAlive);
  }
}

const OK = "HTTP/1.1 200 OK\r\n";
const LAST_CHUNK = "0\r\n\r\n";

/** The lines before short chunks: most are short. */
const sizeLines: string[] = [];
const SIZE_LINES = 1_024;

const sizeLine = (bytes: number): string => {
  if (bytes >= SIZE_LINES) return `${bytes.toString(16)}\r\n`;
  if (sizeLines.length === 0) for (let n = 0; n < SIZE_LINES; n++) sizeLines.push(`${n.toString(16)}\r\n`);
  return sizeLines[bytes] as string;
};
/** What would end a header before its end. */
const NO_VALUE = /[^\t\x20-\x7e\x80-\xff]/;

const linesOf = (headers: Headers, over: Headers | undefined): string => {
  let text = "";
  for (const name in headers) {
    const value = headers[name];
    if (value === undefined || over?.[name] !== undefined) continue;
    if (Array.isArray(value)) for (const one of value) text += lineOf(name, one);
    else text += lineOf(name, value);
  }
  return text;
};

const lineOf = (name: string, value: string | number): string => {
  if (typeof value === "string" && NO_VALUE.test(value))
    throw new TypeError(`the header ${name} has a character that none may have`);
  return `${name}: ${value}\r\n`;
};

let secondOf = 0;
let keepLines = "";
let closeLines = "";

/** The lines that each answer ends with, made once a second. */
const makeLines = (): void => {
  const second = Math.floor(Date.now() / 1_000);
  if (second === secondOf) return;
  secondOf = second;
  const date = `Date: ${new Date().toUTCString()}\r\n`;
  keepLines = `${date}Connection: keep-alive\r\nKeep-Alive: timeout=${KEEP_ALIVE_S}\r\n`;
  closeLines = `${date}Connection: close\r\n`;
};
const keptAlive = (): string => {
  makeLines();
  return keepLines;
};
const closed = (): string => {
  makeLines();
  return closeLines;
};

export const KEEP_ALIVE_S = 65;
