import type { Stream } from "#store/rules/records.ts";

/** Numbered entries in an array, of which the oldest go. */
export class ArrayStream<E extends { seq: number }> implements Stream<E> {
  readonly #weigh: (before: E | undefined, after: E | undefined) => void;
  /** The first `#gone` of them were erased: they leave the array when they are half of it. */
  #entries: (E | undefined)[] = [];
  #gone = 0;
  first = 1;

  constructor(weigh: (before: E | undefined, after: E | undefined) => void) {
    this.#weigh = weigh;
  }

  get last(): number {
    return this.first + this.#entries.length - this.#gone - 1;
  }

  append(entries: readonly E[]): void {
    for (const entry of entries) {
      this.#entries.push(entry);
      this.#weigh(undefined, entry);
    }
  }

  after(seq: number, limit: number): E[] {
    const from = this.#placeOf(seq + 1);
    return this.#entries.slice(from, from + limit) as E[];
  }

  before(seq: number, limit: number): E[] {
    const end = this.#placeOf(seq);
    return this.#entries.slice(Math.max(end - limit, this.#gone), end).reverse() as E[];
  }

  eraseBefore(seq: number): void {
    const end = this.#placeOf(seq);
    for (let at = this.#gone; at < end; at++) {
      this.#weigh(this.#entries[at], undefined);
      this.#entries[at] = undefined;
    }
    this.first += end - this.#gone;
    this.#gone = end;
    if (this.#gone * 2 <= this.#entries.length) return;
    this.#entries = this.#entries.slice(this.#gone);
    this.#gone = 0;
  }

  /** Where the entry is, or would be. */
  #placeOf(seq: number): number {
    return Math.min(Math.max(seq - this.first, 0) + this.#gone, this.#entries.length);
  }
}
