import { isUtf8 } from "node:buffer";
import { BackendError } from "#kit/errors.ts";
import { JoinedBytes } from "#kit/joined-bytes.ts";
import { Alike, type Pieces, type Said } from "./alike.ts";

/** The longest line, and the most that the lines of one event may hold. */
export const MOST_OF_AN_EVENT = 1024 * 1024;
const LF = 10;
const NEWLINE = Buffer.from("\n");
const CR = 13;
const COLON = 58;
const SPACE = 32;
const REPLACEMENT = "\ufffd";

/**
 * Server-sent events, read in one pass over their bytes. Lines end with LF or CRLF. Throws a BackendError for what is too long, is no
 * UTF-8 or ends in the middle of an event.
 */
export class EventReader {
  readonly #who: string;
  readonly #onEvent: (name: string, data: string) => Said | undefined;
  readonly #onComment: () => void;
  readonly #most: number;
  readonly #alike: Alike | undefined;
  /** The beginning of a line whose end has not come. */
  readonly #begun: JoinedBytes;
  #hasComment = false;
  #name = "";
  /** The first line of an event's data, and those behind it. */
  #data: string | undefined = undefined;
  readonly #moreData: JoinedBytes;

  constructor(
    who: string,
    /** Answers what it says, of one that is text alone. */
    onEvent: (name: string, data: string) => Said | undefined,
    onComment: () => void,
    most = MOST_OF_AN_EVENT,
    pieces?: Pieces,
  ) {
    this.#who = who;
    this.#onEvent = onEvent;
    this.#onComment = onComment;
    this.#most = most;
    this.#begun = new JoinedBytes(most);
    this.#moreData = new JoinedBytes(most);
    this.#alike = pieces && new Alike(pieces);
  }

  /** Reads the bytes from `from` to `to`. The texts of the last events, and that there were comments, may not be told before `tell`. */
  push(bytes: Buffer, from = 0, to = bytes.length): void {
    try {
      this.#push(bytes, from, to);
    } catch (error) {
      this.tell();
      throw error;
    }
  }

  /** Tells what was read, to the last of it. Comments are told of once, however many came. */
  tell(): void {
    this.#alike?.tell();
    if (!this.#hasComment) return;
    this.#hasComment = false;
    this.#onComment();
  }

  #push(bytes: Buffer, from: number, to: number): void {
    let at = from;
    if (this.#isBetween) {
      for (let end = this.#takeAlike(bytes, at, to); end !== -1; end = this.#takeAlike(bytes, at, to)) at = end;
      if (at === to) return;
    }
    this.#read(bytes.subarray(at, to));
  }

  /** The same for bytes that begin with what was not alike. */
  #read(bytes: Buffer): void {
    let from = 0;
    /** Where the event began that is being read; -1: in bytes that came before. */
    let began = this.#isBetween ? 0 : -1;
    for (;;) {
      const end = began === from ? this.#takeAlike(bytes, from, bytes.length) : -1;
      if (end !== -1) {
        from = end;
        began = end;
        continue;
      }
      const to = bytes.indexOf(LF, from);
      if (to === -1) break;
      if (this.#begun.length === 0) this.#line(bytes, from, to, began);
      else {
        this.#begun.add(bytes, from, to);
        const line = this.#begun.take();
        this.#line(line, 0, line.length, -1);
      }
      from = to + 1;
      if (this.#isBetween) began = from;
    }
    if (this.#begun.length + bytes.length - from > this.#most) throw this.#tooLong();
    this.#begun.add(bytes, from);
  }

  /** The stream has ended. */
  end(): void {
    if (this.#begun.length > 0 || this.#data !== undefined)
      throw new BackendError(`${this.#who} broke off in the middle of an event`, { retryable: true });
  }

  /** No event has begun. */
  get #isBetween(): boolean {
    return this.#begun.length === 0 && this.#data === undefined && this.#name === "";
  }

  #takeAlike(bytes: Buffer, from: number, to: number): number {
    return this.#alike === undefined ? -1 : this.#alike.take(bytes, from, to);
  }

  #line(bytes: Buffer, from: number, lineEnd: number, began: number): void {
    const to = lineEnd > from && bytes[lineEnd - 1] === CR ? lineEnd - 1 : lineEnd;
    if (to === from) {
      const data = this.#takeData();
      const name = this.#name;
      this.#name = "";
      if (data === undefined) return;
      this.tell();
      const said = this.#onEvent(name, data);
      if (!said) this.#alike?.forget();
      else if (began !== -1) this.#alike?.learn(name, data, said, bytes.subarray(began, lineEnd + 1));
      return;
    }
    if (to - from > this.#most) throw this.#tooLong();
    // A field's first letter tells `data`, `event`, `id` and `retry` apart; the whole name is compared where it matters.
    switch (bytes[from]) {
      case 100: {
        const start = valueAt(bytes, from, to, "data");
        if (start === undefined) return;
        if (this.#data === undefined) this.#data = this.#text(bytes, start, to);
        else {
          if (this.#data.length + this.#moreData.length + 1 + to - start > this.#most) throw this.#tooLong();
          this.#moreData.add(NEWLINE);
          this.#moreData.add(bytes, start, to);
        }
        return;
      }
      case 101: {
        const start = valueAt(bytes, from, to, "event");
        if (start !== undefined) this.#name = this.#text(bytes, start, to);
        return;
      }
      case COLON:
        this.#hasComment = true;
    }
  }

  #takeData(): string | undefined {
    const first = this.#data;
    this.#data = undefined;
    if (first === undefined || this.#moreData.length === 0) return first;
    const more = this.#moreData.take();
    return first + this.#text(more, 0, more.length);
  }

  #text(bytes: Buffer, start: number, to: number): string {
    const value = bytes.toString("utf8", start, to);
    // Only where the decoder has put its mark can there be a byte that it did not understand.
    if (value.includes(REPLACEMENT) && !isUtf8(bytes.subarray(start, to)))
      throw new BackendError(`${this.#who} sent what is no UTF-8`);
    return value;
  }

  #tooLong(): BackendError {
    return new BackendError(`${this.#who} sent an event that is longer than ${this.#most / 1024 / 1024} MiB`);
  }
}

/** Where the value of a field begins, at most at `to`; undefined where the line has another field. */
const valueAt = (bytes: Buffer, from: number, to: number, name: string): number | undefined => {
  const after = from + name.length;
  if (bytes.toString("latin1", from, after) !== name || (after < to && bytes[after] !== COLON)) return undefined;
  return Math.min(to, after + (bytes[after + 1] === SPACE ? 2 : 1));
};
