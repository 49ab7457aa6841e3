const NOTHING = Buffer.alloc(0);

/** Bytes that come in pieces, in one buffer. They never take more than twice `most`, however small the pieces are. */
export class JoinedBytes {
  readonly #most: number;
  #bytes: Buffer = NOTHING;
  #length = 0;

  /** `most`: how many they may become. The caller checks it. */
  constructor(most: number) {
    this.#most = most;
  }

  get length(): number {
    return this.#length;
  }

  /** Adds a copy of the bytes from `from` to `to`. */
  add(bytes: Buffer, from = 0, to = bytes.length): void {
    const length = this.#length + to - from;
    if (length > this.#bytes.length) {
      const larger = Buffer.allocUnsafe(Math.max(length, Math.min(2 * this.#bytes.length, this.#most)));
      this.#bytes.copy(larger, 0, 0, this.#length);
      this.#bytes = larger;
    }
    bytes.copy(this.#bytes, this.#length, from, to);
    this.#length = length;
  }

  /** All of them. There are none afterwards. */
  take(): Buffer {
    const all = this.#bytes.subarray(0, this.#length);
    this.#bytes = NOTHING;
    this.#length = 0;
    return all;
  }
}
