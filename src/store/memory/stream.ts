import type { Stream } from "#store/rules/records.ts";

/** Numbered entries in an array, of which the oldest go. */
export class ArrayStream<E extends { seq: number }> implements Stream<E> {
  readonly #weigh: (entry: E, by: 1 | -1) => void;
  readonly #entries: E[] = [];
  first = 1;

  constructor(weigh: (entry: E, by: 1 | -1) => void) {
    this.#weigh = weigh;
  }

  get last(): number {
    return this.first + this.#entries.length - 1;
  }

  append(entries: readonly E[]): void {
    for (const entry of entries) {
      this.#entries.push(entry);
      this.#weigh(entry, 1);
    }
  }

  after(seq: number, limit: number): E[] {
    const from = Math.max(seq + 1 - this.first, 0);
    return this.#entries.slice(from, from + limit);
  }

  before(seq: number, limit: number): E[] {
    const end = Math.max(Math.min(seq - this.first, this.#entries.length), 0);
    return this.#entries.slice(Math.max(end - limit, 0), end).reverse();
  }

  eraseBefore(seq: number): void {
    const erased = this.#entries.splice(0, Math.max(seq - this.first, 0));
    for (const entry of erased) this.#weigh(entry, -1);
    this.first += erased.length;
  }
}
