import type { Stream } from "#store/rules/streams.ts";

/** Entries that are packed together. */
const CHUNK = 32;
/** The newest entries are not packed: most journals never have more. */
const UNPACKED = 512;

/**
 * Numbered entries in an array. The oldest entries of a long stream are packed into strings, because the garbage collector visits every stored
 * object while callers wait.
 */
export class ArrayStream<E extends { seq: number }> implements Stream<E> {
  readonly #weigh: ((entry: E, by: 1 | -1) => void) | undefined;
  /** The `seq` of the first entry of the first chunk, which stays whole until all of it is erased. */
  #start = 1;
  #chunks: string[] = [];
  #newest: E[] = [];
  first = 1;

  /** `weigh` is called with each entry that is appended or erased. */
  constructor(weigh?: (entry: E, by: 1 | -1) => void) {
    this.#weigh = weigh;
  }

  get last(): number {
    return this.#unpackedFrom + this.#newest.length - 1;
  }

  append(entries: readonly E[]): void {
    for (const entry of entries) {
      this.#newest.push(entry);
      this.#weigh?.(entry, 1);
    }
    while (this.#newest.length >= UNPACKED + CHUNK) this.#chunks.push(JSON.stringify(this.#newest.splice(0, CHUNK)));
  }

  after(seq: number, limit: number): E[] {
    const from = Math.max(seq + 1, this.first);
    return this.#between(from, from + limit);
  }

  before(seq: number, limit: number): E[] {
    const end = Math.min(seq, this.last + 1);
    return this.#between(end - limit, end).reverse();
  }

  erase(oldest: readonly E[]): void {
    for (const entry of oldest) this.#weigh?.(entry, -1);
    this.eraseBefore((oldest.at(-1)?.seq ?? 0) + 1);
  }

  /** For streams without weights. Does not unpack entries, because a full stream of fixed length loses one entry for each new one. */
  eraseBefore(seq: number): void {
    this.first = Math.max(this.first, Math.min(seq, this.last + 1));
    const chunks = Math.min(Math.floor((this.first - this.#start) / CHUNK), this.#chunks.length);
    this.#chunks.splice(0, chunks);
    this.#start += chunks * CHUNK;
    if (this.#chunks.length > 0) return;
    this.#newest.splice(0, this.first - this.#start);
    this.#start = this.first;
  }

  get #unpackedFrom(): number {
    return this.#start + this.#chunks.length * CHUNK;
  }

  /** The entries from one `seq` up to another, of those that are kept. */
  #between(from: number, end: number): E[] {
    const found: E[] = [];
    const start = Math.max(from, this.first);
    const firstChunk = Math.floor((start - this.#start) / CHUNK);
    for (let at = firstChunk; at < this.#chunks.length && this.#start + at * CHUNK < end; at++) {
      const entries = JSON.parse(this.#chunks[at] as string) as E[];
      found.push(...entries.filter((entry) => entry.seq >= start && entry.seq < end));
    }
    const unpacked = this.#unpackedFrom;
    return found.concat(this.#newest.slice(Math.max(start - unpacked, 0), Math.max(end - unpacked, 0)));
  }
}
