import { textOfUtf8 } from "#kit/utf8.ts";
import {
  ALIKE,
  ALPHABET,
  AS_TEXT,
  ENCODINGS,
  ID_BYTES,
  ID_CHARACTERS,
  ONE_BYTE,
  PackedWriter,
  readTime,
  UTF8,
} from "./packed.ts";

const CODES = Uint8Array.from(ALPHABET, (character) => character.charCodeAt(0));
/** Where an id is put together: longer than any of ours. */
const ID_TEXT = Buffer.allocUnsafeSlow(64);

/** Reads what a PackedWriter wrote, in the same order. */
export class PackedReader {
  #bytes: Buffer;
  at: number;

  constructor(bytes: Buffer, at: number) {
    this.#bytes = bytes;
    this.at = at;
  }

  byte(): number {
    return this.#bytes[this.at++] as number;
  }

  count(): number {
    let value = 0;
    for (let unit = 1; ; unit *= 128) {
      const byte = this.byte();
      value += (byte & 127) * unit;
      if (byte < 128) return value;
    }
  }

  time(): number {
    this.at += 6;
    return readTime(this.#bytes, this.at - 6);
  }

  id(prefix: string): string {
    if (this.#bytes[this.at] === AS_TEXT) {
      this.at++;
      return this.text();
    }
    let to = 0;
    for (; to < prefix.length; to++) ID_TEXT[to] = prefix.charCodeAt(to);
    const bytes = this.#bytes;
    let { at } = this;
    for (let group = 0; group < 3; group++) {
      const middle = bytes[at + 2] as number;
      const high = ((bytes[at] as number) << 12) | ((bytes[at + 1] as number) << 4) | (middle >> 4);
      const low = ((middle & 15) << 16) | ((bytes[at + 3] as number) << 8) | (bytes[at + 4] as number);
      for (let shift = 15; shift >= 0; shift -= 5) ID_TEXT[to++] = CODES[(high >> shift) & 31] as number;
      for (let shift = 15; shift >= 0; shift -= 5) ID_TEXT[to++] = CODES[(low >> shift) & 31] as number;
      at += 5;
    }
    const last = ((bytes[at] as number) << 2) | (bytes[at + 1] as number);
    ID_TEXT[to++] = CODES[last >> 5] as number;
    ID_TEXT[to++] = CODES[last & 31] as number;
    this.at += ID_BYTES;
    return ID_TEXT.toString("latin1", 0, to);
  }

  /** Whether the id that comes next is this one, which has the prefix. Where the reader stands after it, nobody may ask. */
  isId(id: string, prefix: string): boolean {
    const bytes = this.#bytes;
    let { at } = this;
    if (bytes[at] === AS_TEXT) {
      this.at++;
      return this.isText(id);
    }
    if (id.length !== prefix.length + ID_CHARACTERS) return false;
    // Five bits a character; the last byte has but two of them.
    let bits = 0;
    let count = 0;
    for (let n = prefix.length; n < id.length; n++) {
      if (count < 5) {
        const more = n === id.length - 1 ? 2 : 8;
        bits = ((bits & 15) << more) | (bytes[at++] as number);
        count += more;
      }
      count -= 5;
      if (CODES[(bits >> count) & 31] !== id.charCodeAt(n)) return false;
    }
    return true;
  }

  /** An id that mostly is like `other`. */
  idLike(prefix: string, other: string): string {
    if (this.#bytes[this.at] !== ALIKE) return this.id(prefix);
    this.at++;
    return prefix + other.slice(other.length - ID_CHARACTERS);
  }

  /** Whether the text that comes next is this one. Where the reader stands after it, nobody may ask. */
  isText(text: string): boolean {
    const start = this.at;
    const head = this.count();
    if (head % 4 !== ONE_BYTE) {
      this.at = start;
      return this.text() === text;
    }
    if (head !== text.length * 4 + ONE_BYTE) return false;
    for (let n = 0; n < text.length; n++) if (this.#bytes[this.at + n] !== text.charCodeAt(n)) return false;
    return true;
  }

  text(): string {
    const head = this.count();
    const length = Math.floor(head / 4);
    this.at += length;
    const kind = (head % 4) as 0 | 1 | 2;
    if (kind === UTF8) return textOfUtf8(this.#bytes, this.at - length, this.at);
    return this.#bytes.toString(ENCODINGS[kind], this.at - length, this.at);
  }

  optional(): string | undefined {
    return this.byte() === 0 ? undefined : this.text();
  }

  skipId(): void {
    const first = this.#bytes[this.at];
    this.at += first === ALIKE || first === AS_TEXT ? 1 : ID_BYTES;
    if (first === AS_TEXT) this.skipText();
  }

  skipText(): void {
    const head = this.count();
    this.at += Math.floor(head / 4);
  }

  skipOptional(): void {
    if (this.byte() !== 0) this.skipText();
  }

  /** Whether the id that comes next is this one; goes past it. `likeAt` is where that is which it may be like. */
  nextIs(wanted: WantedId | undefined, prefix: string, likeAt = this.at): boolean {
    const at = this.#bytes[this.at] === ALIKE ? likeAt : this.at;
    this.skipId();
    if (wanted === undefined) return false;
    if (this.#bytes[at] === AS_TEXT) return new PackedReader(this.#bytes, at + 1).isText(wanted.text);
    if (wanted.packed === undefined || !wanted.text.startsWith(prefix)) return false;
    for (let n = 0; n < ID_BYTES; n++) if (this.#bytes[at + n] !== wanted.packed[n]) return false;
    return true;
  }

  /** Whether the text that comes next is this one; goes past it. */
  nextTextIs(wanted: string | undefined): boolean {
    const { at } = this;
    this.skipText();
    return wanted !== undefined && new PackedReader(this.#bytes, at).isText(wanted);
  }
}

/** An id to look for: packed when it is one of ours. */
export type WantedId = { readonly text: string; readonly packed: Uint8Array | undefined };

const PREFIX = /^[a-z]+_/;

const writer = new PackedWriter();

export const wantedId = (text: string): WantedId => {
  writer.begin();
  writer.id(text, PREFIX.exec(text)?.[0] ?? "");
  const packed = writer.bytes[0] === AS_TEXT ? undefined : Uint8Array.from(writer.bytes.subarray(0, writer.length));
  return { text, packed };
};
