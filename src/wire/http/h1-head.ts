import type { IncomingHttpHeaders } from "node:http";

/** The head of a request that is as plain as most are, and where its body begins. */
export type Head = {
  method: string;
  url: string;
  headers: IncomingHttpHeaders;
  rawHeaders: string[];
  /** What it announces of a body. */
  length: number;
  /** How many bytes the head has. */
  end: number;
};

const HEAD_LIMIT = 4096;
const MOST_HEADERS = 64;
const BLANK_LINE = Buffer.from("\r\n\r\n");

// Stricter than the protocol: what one parser reads one way and a proxy's in front another way is not read here at all.
const REQUEST_LINE = /^(GET|POST) (\/[A-Za-z0-9/._~%?=&+,:;@!$'()*-]*) HTTP\/1\.1$/;
const HEADER_LINE = /^([A-Za-z][A-Za-z0-9-]*): ?([!-~](?:[ -~]*[!-~])?)$/;
const LENGTH = /^(?:0|[1-9][0-9]{0,8})$/;

/** What changes how a message or its connection is to be read; and the one that Node reads as a list. */
const NOT_PLAIN = new Set([
  "connection",
  "expect",
  "http2-settings",
  "keep-alive",
  "proxy-connection",
  "set-cookie",
  "te",
  "trailer",
  "transfer-encoding",
  "upgrade",
]);

/**
 * The head at the beginning of `bytes`, if it came whole and is plain: a GET or POST of HTTP/1.1 with an ordinary target, each header
 * once, on a line of its own, in printable ASCII, and none that says how to read the message but Content-Length. Undefined for all
 * else, which Node's own parser is to judge.
 */
export const readHead = (bytes: Buffer): Head | undefined => {
  const end = bytes.subarray(0, HEAD_LIMIT).indexOf(BLANK_LINE);
  if (end < 0) return undefined;
  // What is cut from this text, and remembered, holds all of it: nothing of the body may be in it.
  const lines = bytes.toString("latin1", 0, end).split("\r\n");
  const [, method, url] = REQUEST_LINE.exec(lines[0] as string) ?? [];
  if (method === undefined || url === undefined || lines.length > MOST_HEADERS) return undefined;
  const headers: IncomingHttpHeaders = {};
  const rawHeaders: string[] = [];
  for (let n = 1; n < lines.length; n++) {
    const [, sent, value] = HEADER_LINE.exec(lines[n] as string) ?? [];
    if (sent === undefined || value === undefined) return undefined;
    const name = sent.toLowerCase();
    if (Object.hasOwn(headers, name)) return undefined;
    if (NOT_PLAIN.has(name) && !(name === "connection" && value.toLowerCase() === "keep-alive")) return undefined;
    headers[name] = value;
    rawHeaders.push(sent, value);
  }
  const announced = headers["content-length"];
  if (announced !== undefined && !LENGTH.test(announced)) return undefined;
  return { method, url, headers, rawHeaders, length: Number(announced ?? 0), end: end + BLANK_LINE.length };
};

const NAME = "\r\ncontent-length: ";
const NOTHING = Buffer.alloc(0);
const ZERO = 48;

/**
 * Remembers the head of a connection's last request: a client sends the same again and again, but for the length of the body. What it
 * answers is the same as `readHead` would.
 */
export class HeadMemory {
  #head: Head | undefined;
  /** The bytes of the head, in memory of their own: a piece of Node's pool would keep all that lies around it. */
  #bytes = NOTHING;
  /** Where in them the digits of its length begin, and where what comes behind those; both are its end when it has none. */
  #digitsAt = 0;
  #restAt = 0;
  #end = 0;

  read(bytes: Buffer): Head | undefined {
    return this.#same(bytes) ?? this.#remember(readHead(bytes), bytes);
  }

  #same(bytes: Buffer): Head | undefined {
    const head = this.#head;
    if (!head) return undefined;
    const first = this.#digitsAt;
    if (bytes.length < first || this.#bytes.compare(bytes, 0, first, 0, first) !== 0) return undefined;
    const rest = this.#end - this.#restAt;
    if (rest === 0) return head;
    let at = first;
    let length = 0;
    for (let digit = digitAt(bytes, at); digit >= 0; digit = digitAt(bytes, ++at)) length = length * 10 + digit;
    const digits = at - first;
    if (digits === 0 || digits > MOST_DIGITS || (digits > 1 && bytes[first] === ZERO)) return undefined;
    const end = at + rest;
    if (bytes.length < end || end > HEAD_LIMIT) return undefined;
    if (this.#bytes.compare(bytes, at, end, this.#restAt, this.#end) !== 0) return undefined;
    if (length === head.length) return head;
    const text = String(length);
    const headers = { ...head.headers, "content-length": text };
    const rawHeaders = head.rawHeaders.slice();
    rawHeaders[this.#lengthAt(rawHeaders)] = text;
    this.#head = { ...head, headers, rawHeaders, length, end };
    return this.#head;
  }

  #remember(head: Head | undefined, bytes: Buffer): Head | undefined {
    this.#head = undefined;
    if (!head || head.end > MOST_REMEMBERED) return head;
    const hasLength = head.headers["content-length"] !== undefined;
    const name = hasLength ? bytes.toString("latin1", 0, head.end).toLowerCase().indexOf(NAME) : 0;
    // Written without the space after its colon.
    if (name < 0) return head;
    this.#digitsAt = hasLength ? name + NAME.length : head.end;
    this.#restAt = hasLength ? this.#digitsAt + String(head.length).length : head.end;
    this.#end = head.end;
    if (this.#bytes.length < head.end) this.#bytes = Buffer.allocUnsafeSlow(head.end);
    bytes.copy(this.#bytes, 0, 0, head.end);
    this.#head = head;
    return head;
  }

  #lengthAt(rawHeaders: readonly string[]): number {
    for (let n = 0; n < rawHeaders.length; n += 2)
      if (
        (rawHeaders[n] as string).length === "content-length".length &&
        (rawHeaders[n] as string).toLowerCase() === "content-length"
      )
        return n + 1;
    return -1;
  }
}

/** A longer head costs a connection more to keep than it is worth. */
const MOST_REMEMBERED = 1024;
const MOST_DIGITS = 9;

const digitAt = (bytes: Buffer, at: number): number => {
  const digit = (bytes[at] ?? 0) - ZERO;
  return digit >= 0 && digit <= 9 ? digit : -1;
};
