import type { Stream } from "#store/rules/records.ts";

/** Numbered entries in an array, of which the oldest go. */
export class ArrayStream<E extends { seq: number }> implements Stream<E> {
  readonly #weigh: (before: E | undefined, after: E | undefined) => void;
  #entries: E[] = [];
  first = 1;

  constructor(weigh: (before: E | undefined, after: E | undefined) => void) {
    this.#weigh = weigh;
  }

  get last(): number {
    return this.first + this.#entries.length - 1;
  }

  append(entries: readonly E[]): void {
    for (const entry of entries) {
      this.#entries.push(entry);
      this.#weigh(undefined, entry);
    }
  }

  after(seq: number, limit: number): E[] {
    const from = Math.max(seq + 1 - this.first, 0);
    return this.#entries.slice(from, from + limit);
  }

  before(seq: number, limit: number): E[] {
    const end = Math.min(Math.max(seq - this.first, 0), this.#entries.length);
    return this.#entries.slice(Math.max(end - limit, 0), end).reverse();
  }

  eraseBefore(seq: number): void {
    const gone = Math.min(seq - this.first, this.#entries.length);
    if (gone <= 0) return;
    for (const entry of this.#entries.slice(0, gone)) this.#weigh(entry, undefined);
    this.#entries.splice(0, gone);
    this.first += gone;
  }
}
