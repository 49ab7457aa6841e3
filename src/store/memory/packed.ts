const ALPHABET = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";
const VALUES = new Uint8Array(128).fill(255);
for (let value = 0; value < ALPHABET.length; value++) VALUES[ALPHABET.charCodeAt(value)] = value;

const ID_CHARACTERS = 26;
/** An id is kept as text when it is none of ours: its first byte is then this, and never that of a packed one. */
const AS_TEXT = 255;

const ONE_BYTE = 0;
const UTF8 = 1;
const UTF16 = 2;

/** Bytes to write an entry into before its length is known; grows, and shrinks again after a large one. */
export class PackedWriter {
  bytes = Buffer.allocUnsafeSlow(4096);
  length = 0;

  begin(): void {
    if (this.bytes.length > 65_536) this.bytes = Buffer.allocUnsafeSlow(4096);
    this.length = 0;
  }

  byte(value: number): void {
    this.#room(1);
    this.bytes[this.length++] = value;
  }

  /** A whole number from 0 up, in as few bytes as it needs. */
  count(value: number): void {
    this.#room(8);
    let rest = value;
    while (rest >= 128) {
      this.bytes[this.length++] = (rest % 128) | 128;
      rest = Math.floor(rest / 128);
    }
    this.bytes[this.length++] = rest;
  }

  /** A time in milliseconds, in six bytes. */
  time(ms: number): void {
    this.#room(6);
    this.length = this.bytes.writeUIntBE(ms, this.length, 6);
  }

  /** One of our ids (its prefix is known to the reader) in 17 bytes; any other text as it is. */
  id(text: string, prefix: string): void {
    this.#room(17);
    const from = prefix.length;
    const start = this.length;
    if (text.length === from + ID_CHARACTERS && text.startsWith(prefix)) {
      let bits = 0;
      let held = 0;
      for (let at = from; at < text.length; at++) {
        const value = VALUES[text.charCodeAt(at)] ?? 255;
        if (value === 255) break;
        held = (held << 5) | value;
        bits += 5;
        if (bits < 8) continue;
        bits -= 8;
        this.bytes[this.length++] = held >> bits;
        held &= (1 << bits) - 1;
        if (at === text.length - 1) this.bytes[this.length++] = held;
      }
      if (this.length - start === 17 && this.bytes[start] !== AS_TEXT) return;
      this.length = start;
    }
    this.byte(AS_TEXT);
    this.text(text);
  }

  text(text: string): void {
    if (text.length <= SHORT && this.#shortText(text)) return;
    const bytes = Buffer.byteLength(text);
    const kind = bytes === text.length ? ONE_BYTE : text.isWellFormed() ? UTF8 : UTF16;
    const length = kind === UTF16 ? text.length * 2 : bytes;
    this.count(length * 4 + kind);
    this.#room(length);
    this.length += this.bytes.write(text, this.length, ENCODINGS[kind]);
  }

  /** Most texts are short and plain, and a call into the system costs more than their bytes. False, and nothing written, for another. */
  #shortText(text: string): boolean {
    const { length } = text;
    this.#room(length + 2);
    const start = this.length;
    this.count(length * 4 + ONE_BYTE);
    const { bytes } = this;
    let to = this.length;
    for (let at = 0; at < length; at++) {
      const unit = text.charCodeAt(at);
      if (unit > MOST_PLAIN) {
        this.length = start;
        return false;
      }
      bytes[to++] = unit;
    }
    this.length = to;
    return true;
  }

  /** Bytes as they are; how many there are, the reader must know. */
  blob(bytes: Uint8Array): void {
    this.#room(bytes.length);
    this.bytes.set(bytes, this.length);
    this.length += bytes.length;
  }

  #room(bytes: number): void {
    if (this.length + bytes <= this.bytes.length) return;
    const larger = Buffer.allocUnsafeSlow(Math.max(this.bytes.length * 2, this.length + bytes));
    this.bytes.copy(larger, 0, 0, this.length);
    this.bytes = larger;
  }
}

/** So long a text is written here, character by character. */
const SHORT = 64;
const MOST_PLAIN = 127;

const ENCODINGS = ["latin1", "utf8", "utf16le"] as const;

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
    return this.#bytes.readUIntBE(this.at - 6, 6);
  }

  id(prefix: string): string {
    if (this.#bytes[this.at] === AS_TEXT) {
      this.at++;
      return this.text();
    }
    let text = prefix;
    let held = 0;
    let bits = 0;
    for (let n = 0; n < 16; n++) {
      held = (held << 8) | this.byte();
      bits += 8;
      while (bits >= 5) {
        bits -= 5;
        text += ALPHABET[(held >> bits) & 31];
      }
      held &= (1 << bits) - 1;
    }
    // 128 bits make 25 characters and 3 bits; the last two bits have a byte of their own.
    const last = ((held << 2) | this.byte()) & 31;
    return text + ALPHABET[last];
  }

  text(): string {
    const head = this.count();
    const length = Math.floor(head / 4);
    this.at += length;
    return this.#bytes.toString(ENCODINGS[(head % 4) as 0 | 1 | 2], this.at - length, this.at);
  }
}
