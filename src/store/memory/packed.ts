export const ALPHABET = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";
/** Of a character that ids of ours have not: one bit more. */
const NO_VALUE = 32;
const VALUES = new Uint8Array(128).fill(NO_VALUE);
for (let value = 0; value < ALPHABET.length; value++) VALUES[ALPHABET.charCodeAt(value)] = value;

export const ID_CHARACTERS = 26;
export const ID_BYTES = 17;
/** An id is kept as text when it is none of ours: its first byte is then this, and never that of a packed one. */
export const AS_TEXT = 255;
/** An id that is like another, but for its prefix, is this byte alone. */
export const ALIKE = 254;

export const ONE_BYTE = 0;
export const UTF8 = 1;
const UTF16 = 2;

const HIGH = 2 ** 32;

/** A time or another number below 2 ** 48, in six bytes. Node's own function for it checks far more than is needed here. */
export const writeTime = (bytes: Buffer, at: number, ms: number): void => {
  const high = Math.floor(ms / HIGH);
  const low = ms >>> 0;
  bytes[at] = high >> 8;
  bytes[at + 1] = high;
  bytes[at + 2] = low >>> 24;
  bytes[at + 3] = low >>> 16;
  bytes[at + 4] = low >>> 8;
  bytes[at + 5] = low;
};

export const readTime = (bytes: Buffer, at: number): number => {
  const high = ((bytes[at] as number) << 8) | (bytes[at + 1] as number);
  const low =
    ((bytes[at + 2] as number) << 24) |
    ((bytes[at + 3] as number) << 16) |
    ((bytes[at + 4] as number) << 8) |
    (bytes[at + 5] as number);
  return high * HIGH + (low >>> 0);
};

/** The time in the packed id at `at`: its first ten characters. */
export const readIdTime = (bytes: Uint8Array, at: number): number => {
  const fourth = bytes[at + 3] as number;
  const high = ((bytes[at] as number) << 22) | ((bytes[at + 1] as number) << 14) | ((bytes[at + 2] as number) << 6);
  const low = ((fourth & 3) << 18) | ((bytes[at + 4] as number) << 10) | ((bytes[at + 5] as number) << 2);
  return (high | (fourth >> 2)) * 2 ** 20 + (low | ((bytes[at + 6] as number) >> 6));
};

/** So long a text is written here, character by character. */
const SHORT = 64;
const MOST_PLAIN = 127;

export const ENCODINGS = ["latin1", "utf8", "utf16le"] as const;

/** UTF-16 is how V8 has a text that is not Latin-1: to write it is thirty times as fast, so it is taken where it is no longer. */
const kindOf = (text: string, bytes: number): 0 | 1 | 2 => {
  if (bytes === text.length) return ONE_BYTE;
  return bytes < text.length * 2 && text.isWellFormed() ? UTF8 : UTF16;
};

const isAlike = (id: string, prefix: string, other: string): boolean => {
  const { length } = prefix;
  if (id.length !== length + ID_CHARACTERS || other.length < ID_CHARACTERS) return false;
  return id.slice(length) === other.slice(other.length - ID_CHARACTERS) && id.startsWith(prefix);
};

const OWN_BYTES = 4096;
const MOST_OWN_BYTES = 65_536;
const NOTHING = Buffer.alloc(0);

/**
 * Writes a record whose length nobody knows before: into bytes of its own, which grow, and shrink again after a large one; or right to
 * where it stays, as long as there is room. The record is `bytes` from `start` to `length`.
 */
export class PackedWriter {
  #own: Buffer = NOTHING;
  bytes: Buffer = this.#own;
  start = 0;
  length = 0;

  begin(): void {
    this.#reset();
    this.bytes = this.#own;
    this.start = 0;
    this.length = 0;
  }

  /** Writes into `bytes` from `at` on; into bytes of its own when they are too few. */
  beginAt(bytes: Buffer, at: number): void {
    this.#reset();
    this.bytes = bytes;
    this.start = at;
    this.length = at;
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
    writeTime(this.bytes, this.length, ms);
    this.length += 6;
  }

  int32(value: number): void {
    this.#room(4);
    this.length = this.bytes.writeInt32BE(value, this.length);
  }

  /** One of our ids (its prefix is known to the reader) in 17 bytes; any other text as it is. */
  id(text: string, prefix: string): void {
    if (text.length === prefix.length + ID_CHARACTERS && this.#packedId(text, prefix)) return;
    this.byte(AS_TEXT);
    this.text(text);
  }

  /** An id that mostly is like `other`, which the reader knows by then. */
  idLike(text: string, prefix: string, other: string): void {
    if (isAlike(text, prefix, other)) this.byte(ALIKE);
    else this.id(text, prefix);
  }

  /** Eight characters are five bytes; the last two are ten bits. False, and nothing written, for an id that is none of ours. */
  #packedId(text: string, prefix: string): boolean {
    for (let at = 0; at < prefix.length; at++) if (text.charCodeAt(at) !== prefix.charCodeAt(at)) return false;
    this.#room(ID_BYTES);
    const { bytes } = this;
    let to = this.length;
    let at = prefix.length;
    let wrong = 0;
    for (let group = 0; group < 3; group++) {
      const a = text.charCodeAt(at);
      const b = text.charCodeAt(at + 1);
      const c = text.charCodeAt(at + 2);
      const d = text.charCodeAt(at + 3);
      const e = text.charCodeAt(at + 4);
      const f = text.charCodeAt(at + 5);
      const g = text.charCodeAt(at + 6);
      const h = text.charCodeAt(at + 7);
      const va = VALUES[a & MOST_PLAIN] as number;
      const vb = VALUES[b & MOST_PLAIN] as number;
      const vc = VALUES[c & MOST_PLAIN] as number;
      const vd = VALUES[d & MOST_PLAIN] as number;
      const ve = VALUES[e & MOST_PLAIN] as number;
      const vf = VALUES[f & MOST_PLAIN] as number;
      const vg = VALUES[g & MOST_PLAIN] as number;
      const vh = VALUES[h & MOST_PLAIN] as number;
      wrong |= ((a | b | c | d | e | f | g | h) >> 7) | ((va | vb | vc | vd | ve | vf | vg | vh) >> 5);
      const high = (va << 15) | (vb << 10) | (vc << 5) | vd;
      const low = (ve << 15) | (vf << 10) | (vg << 5) | vh;
      bytes[to++] = high >> 12;
      bytes[to++] = high >> 4;
      bytes[to++] = (high << 4) | (low >> 16);
      bytes[to++] = low >> 8;
      bytes[to++] = low;
      at += 8;
    }
    const y = text.charCodeAt(at);
    const z = text.charCodeAt(at + 1);
    const vy = VALUES[y & MOST_PLAIN] as number;
    const vz = VALUES[z & MOST_PLAIN] as number;
    wrong |= ((y | z) >> 7) | ((vy | vz) >> 5);
    bytes[to++] = (vy << 3) | (vz >> 2);
    bytes[to++] = vz & 3;
    if (wrong !== 0 || (bytes[this.length] as number) >= ALIKE) return false;
    this.length = to;
    return true;
  }

  /** `known`: how long it is in UTF-8, where somebody knows. */
  text(text: string, known?: number): void {
    if (text.length <= SHORT && this.#shortText(text)) return;
    const bytes = known ?? Buffer.byteLength(text);
    const kind = kindOf(text, bytes);
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

  optional(text: string | undefined): void {
    this.byte(text === undefined ? 0 : 1);
    if (text !== undefined) this.text(text);
  }

  /** Bytes as they are; how many there are, the reader must know. */
  blob(bytes: Uint8Array): void {
    this.#room(bytes.length);
    this.bytes.set(bytes, this.length);
    this.length += bytes.length;
  }

  /** Bytes of its own as they are at first: none were taken yet, or too many for what is mostly written. */
  #reset(): void {
    const { length } = this.#own;
    if (length === 0 || length > MOST_OWN_BYTES) this.#own = Buffer.allocUnsafeSlow(OWN_BYTES);
  }

  #room(bytes: number): void {
    if (this.length + bytes > this.bytes.length) this.#grow(bytes);
  }

  #grow(bytes: number): void {
    const written = this.length - this.start;
    const from = this.bytes;
    if (from === this.#own || this.#own.length < written + bytes) {
      this.#own = Buffer.allocUnsafeSlow(Math.max(this.#own.length * 2, written + bytes));
    }
    from.copy(this.#own, 0, this.start, this.length);
    this.bytes = this.#own;
    this.start = 0;
    this.length = written;
  }
}
