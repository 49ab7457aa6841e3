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
const BLANK_LINE = "\r\n\r\n";

// Stricter than the protocol: what one parser reads one way and a proxy's in front another way is not read here at all.
const REQUEST_LINE = /^(GET|POST) (\/[A-Za-z0-9/._~%?=&+,:;@!$'()*-]*) HTTP\/1\.1$/;
const HEADER_LINE = /^([A-Za-z][A-Za-z0-9-]*): ?([!-~](?:[ -~]*[!-~])?)$/;
const LENGTH = /^(?:0|[1-9][0-9]{0,8})$/;

/** What changes how a message or its connection is to be read. */
const NOT_PLAIN = new Set([
  "connection",
  "expect",
  "http2-settings",
  "keep-alive",
  "proxy-connection",
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
  const text = bytes.toString("latin1", 0, Math.min(bytes.length, HEAD_LIMIT));
  const end = text.indexOf(BLANK_LINE);
  if (end < 0) return undefined;
  const lines = text.slice(0, end).split("\r\n");
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

const NAME = "content-length: ";
const ZERO = 48;

/**
 * Remembers the head of a connection's last request: a client sends the same again and again, but for the length of the body. What it
 * answers is the same as `readHead` would.
 */
export class HeadMemory {
  #head: Head | undefined;
  /** The bytes of the head before and after the digits of its length; all of it is before when it has none. */
  #before: Buffer | undefined;
  #after: Buffer | undefined;

  read(bytes: Buffer): Head | undefined {
    return this.#same(bytes) ?? this.#remember(readHead(bytes), bytes);
  }

  #same(bytes: Buffer): Head | undefined {
    const head = this.#head;
    const before = this.#before;
    const after = this.#after;
    if (!head || !before || !after) return undefined;
    let at = before.length;
    if (bytes.length < at || before.compare(bytes, 0, at) !== 0) return undefined;
    if (after.length === 0) return head;
    const first = at;
    let length = 0;
    for (let digit = digitAt(bytes, at); digit >= 0; digit = digitAt(bytes, ++at)) length = length * 10 + digit;
    const digits = at - first;
    if (digits === 0 || digits > MOST_DIGITS || (digits > 1 && bytes[first] === ZERO)) return undefined;
    const end = at + after.length;
    if (bytes.length < end || end > HEAD_LIMIT || after.compare(bytes, at, end) !== 0) return undefined;
    if (length === head.length) return head;
    const text = String(length);
    const headers = { ...head.headers, "content-length": text };
    const rawHeaders = head.rawHeaders.slice();
    rawHeaders[this.#lengthAt(rawHeaders)] = text;
    this.#head = { ...head, headers, rawHeaders, length, end };
    return this.#head;
  }

  #remember(head: Head | undefined, bytes: Buffer): Head | undefined {
    this.#head = head && head.end <= MOST_REMEMBERED ? head : undefined;
    if (!this.#head || !head) return head;
    const text = bytes.toString("latin1", 0, head.end);
    const name = text.toLowerCase().indexOf(`\r\n${NAME}`);
    const hasLength = head.headers["content-length"] !== undefined;
    // Written without the space after its colon.
    if (hasLength && name < 0) {
      this.#head = undefined;
      return head;
    }
    const at = hasLength ? name + 2 + NAME.length : head.end;
    const end = hasLength ? at + String(head.length).length : head.end;
    this.#before = Buffer.from(bytes.subarray(0, at));
    this.#after = Buffer.from(bytes.subarray(end, head.end));
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
