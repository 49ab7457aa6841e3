import { HEAD_BYTES } from "#kit/lookup.ts";
import { type AnswerHeaders, framingOf, invalid, keptFor, NoAnswer, readAnswerHead } from "./answer-head.ts";

/** So many heads may come that are no answer yet (100, 102, 103). */
const INTERIM_HEADS = 20;
/** Of what may follow a chunk's size on its line. */
const EXTENSION_BYTES = 1024;
const SIZE_DIGITS = 8;

const BLANK_LINE = Buffer.from("\r\n\r\n");
const CR = 13;
const LF = 10;

/** Who hears of an answer. What it is given of the body, the bytes from `from` to `to`, it has to copy, if it wants to keep it. */
export type AnswerTaker = {
  head(status: number, headers: AnswerHeaders): void;
  body(bytes: Buffer, from: number, to: number): void;
  /** The answer is whole. `keepMs`: for so long its connection may be used again; 0: not at all. */
  whole(keepMs: number): void;
};

type State =
  | "head"
  | "length"
  | "size"
  | "extension"
  | "size-end"
  | "chunk"
  | "chunk-cr"
  | "chunk-lf"
  | "trailer"
  | "trailer-line"
  | "end"
  | "close"
  | "over";

/**
 * Reads one answer of HTTP/1.1 after another, in one pass over their bytes. It is strict: what could be read in two ways is refused.
 */
export class AnswerReader {
  readonly #taker: AnswerTaker;
  #state: State = "head";
  /** The beginning of a head whose end has not come. */
  #held: Buffer | undefined;
  #heldBytes = 0;
  #interim = 0;
  /** Bytes that are to come: of the body, or of the chunk. */
  #left = 0;
  #digits = 0;
  /** Of what is skipped on a line of a chunk, or behind the last. */
  #skipped = 0;
  #keepMs = 0;

  constructor(taker: AnswerTaker) {
    this.#taker = taker;
  }

  /** The next answer may come. */
  begin(): void {
    this.#state = "head";
    this.#interim = 0;
  }

  /** Reads the first `end` bytes. Throws NoAnswer. Answers how many of them were needed: what comes behind an answer is nothing that anybody asked for. */
  push(bytes: Buffer, end: number): number {
    let at = 0;
    while (at < end && this.#state !== "over") {
      switch (this.#state) {
        case "head":
          at = this.#readHead(bytes, at, end);
          break;
        case "length":
        case "chunk": {
          const to = Math.min(end, at + this.#left);
          this.#left -= to - at;
          const isLast = this.#left === 0;
          const from = at;
          at = to;
          if (isLast && this.#state === "chunk") at = this.#endChunk(bytes, to, end);
          this.#taker.body(bytes, from, to);
          if (isLast && this.#state === "length") this.#finish();
          break;
        }
        case "close":
          this.#taker.body(bytes, at, end);
          at = end;
          break;
        case "size":
          at = this.#readSize(bytes, at, end);
          break;
        default:
          this.#readFrame(bytes[at++] as number);
      }
    }
    return at;
  }

  /** The connection has ended. Throws where the answer has not. */
  close(): void {
    if (this.#state === "over") return;
    if (this.#state !== "close") throw new NoAnswer("ECONNRESET", "the connection ended before the answer");
    this.#keepMs = 0;
    this.#finish();
  }

  /** What ends a chunk, which mostly came with it. */
  #endChunk(bytes: Buffer, at: number, end: number): number {
    if (at + 2 <= end && bytes[at] === CR && bytes[at + 1] === LF) {
      this.#nextChunk();
      return at + 2;
    }
    this.#state = "chunk-cr";
    return at;
  }

  /** The line with a chunk's size: as a whole, where it is one and has come. */
  #readSize(bytes: Buffer, from: number, end: number): number {
    const most = Math.min(end, from + SIZE_DIGITS);
    let at = from;
    let size = 0;
    for (let digit = 0; at < most; at++) {
      digit = hexOf(bytes[at] as number);
      if (digit < 0) break;
      size = size * 16 + digit;
    }
    if (this.#digits > 0 || at === from || at + 2 > end || bytes[at] !== CR || bytes[at + 1] !== LF) {
      this.#readFrame(bytes[from] as number);
      return from + 1;
    }
    this.#left = size;
    this.#state = size === 0 ? "trailer" : "chunk";
    return at + 2;
  }

  /** What stands around the chunks, byte by byte. */
  #readFrame(byte: number): void {
    switch (this.#state) {
      case "size": {
        const digit = hexOf(byte);
        if (digit >= 0) {
          if (++this.#digits > SIZE_DIGITS) throw invalid("a chunk that is too long");
          this.#left = this.#left * 16 + digit;
        } else if (this.#digits === 0) throw invalid("a chunk without a size");
        else if (byte === CR) this.#state = "size-end";
        else if (byte === 59 || byte === 32 || byte === 9) this.#state = "extension";
        else throw invalid("a chunk's size that is none");
        return;
      }
      case "extension":
        if (byte === CR) this.#state = "size-end";
        else if (byte === LF || ++this.#skipped > EXTENSION_BYTES) throw invalid("a chunk's extension");
        return;
      case "size-end":
        expect(byte, LF);
        this.#skipped = 0;
        this.#state = this.#left === 0 ? "trailer" : "chunk";
        return;
      case "chunk-cr":
        expect(byte, CR);
        this.#state = "chunk-lf";
        return;
      case "chunk-lf":
        expect(byte, LF);
        this.#nextChunk();
        return;
      case "trailer":
        if (byte === CR) this.#state = "end";
        else this.#skip(byte, "trailer-line");
        return;
      case "trailer-line":
        if (byte === LF) this.#state = "trailer";
        else this.#skip(byte, "trailer-line");
        return;
      case "end":
        expect(byte, LF);
        this.#finish();
    }
  }

  #skip(byte: number, state: State): void {
    if (byte === LF) throw invalid("a line that is none");
    if (++this.#skipped > HEAD_BYTES) throw new NoAnswer("HPE_HEADER_OVERFLOW", "too much behind the last chunk");
    this.#state = state;
  }

  #nextChunk(): void {
    this.#state = "size";
    this.#left = 0;
    this.#digits = 0;
    this.#skipped = 0;
  }

  #finish(): void {
    this.#state = "over";
    this.#taker.whole(this.#keepMs);
  }

  #readHead(bytes: Buffer, from: number, end: number): number {
    if (this.#held) return this.#readHeldHead(bytes, from, end);
    const found = bytes.subarray(from, end).indexOf(BLANK_LINE);
    if (found > HEAD_BYTES || (found < 0 && end - from > HEAD_BYTES)) throw headTooLong();
    if (found >= 0) {
      this.#takeHead(bytes.toString("latin1", from, from + found));
      return from + found + BLANK_LINE.length;
    }
    this.#held = Buffer.allocUnsafeSlow(HEAD_BYTES + BLANK_LINE.length);
    this.#heldBytes = bytes.copy(this.#held, 0, from, end);
    expectHttp(this.#held, this.#heldBytes);
    return end;
  }

  #readHeldHead(bytes: Buffer, from: number, end: number): number {
    const held = this.#held as Buffer;
    const before = this.#heldBytes;
    const copied = bytes.copy(held, before, from, end);
    const all = held.subarray(0, before + copied);
    const found = all.indexOf(BLANK_LINE, Math.max(0, before - BLANK_LINE.length + 1));
    if (found < 0) {
      if (all.length === held.length) throw headTooLong();
      this.#heldBytes = all.length;
      expectHttp(held, all.length);
      return end;
    }
    this.#held = undefined;
    this.#heldBytes = 0;
    this.#takeHead(held.toString("latin1", 0, found));
    return from + found + BLANK_LINE.length - before;
  }

  #takeHead(text: string): void {
    const { status, isNew, headers } = readAnswerHead(text);
    if (status < 200) {
      if (status === 101 || ++this.#interim > INTERIM_HEADS) throw invalid("a head that nobody asked for");
      return;
    }
    const framing = framingOf(status, headers);
    this.#keepMs = framing === "close" ? 0 : keptFor(isNew, headers);
    if (framing === "chunked") this.#nextChunk();
    else if (framing === "close") this.#state = "close";
    else {
      this.#state = "length";
      this.#left = framing;
    }
    this.#taker.head(status, headers);
    if (framing === 0) this.#finish();
  }
}

const headTooLong = (): NoAnswer => new NoAnswer("HPE_HEADER_OVERFLOW", "a head that is too long");

const expect = (byte: number, wanted: number): void => {
  if (byte !== wanted) throw invalid("a chunk that ends elsewhere");
};

const BEGINNING = Buffer.from("HTTP/1.");

/** What does not begin so will never be an answer, however long it is waited for. */
const expectHttp = (held: Buffer, bytes: number): void => {
  const known = Math.min(bytes, BEGINNING.length);
  if (held.compare(BEGINNING, 0, known, 0, known) !== 0) throw invalid("no line with a status");
};

const hexOf = (byte: number): number => {
  if (byte >= 48 && byte <= 57) return byte - 48;
  const letter = byte | 32;
  return letter >= 97 && letter <= 102 ? letter - 87 : -1;
};
