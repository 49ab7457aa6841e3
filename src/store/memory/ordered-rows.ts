import { GatewayError } from "#core/errors.ts";
import type { Page } from "#store/store.ts";

/** Rows in the order of their making, read newest first a page at a time. A page costs the same at any length and any depth. */
export class OrderedRows<T extends { readonly ordinal: number; gone: boolean }> {
  #rows: T[] = [];
  #gone = 0;

  get size(): number {
    return this.#rows.length - this.#gone;
  }

  /** Ordinals must grow. */
  push(row: T): void {
    this.#rows.push(row);
  }

  /** To be called once for a row, after it was marked as gone. */
  forget(): void {
    this.#gone++;
    if (this.#gone > 64 && this.#gone * 2 > this.#rows.length) {
      this.#rows = this.#rows.filter((row) => !row.gone);
      this.#gone = 0;
    }
  }

  find(ordinal: number): T | undefined {
    const row = this.#rows[this.#indexOf(ordinal)];
    return row?.ordinal === ordinal && !row.gone ? row : undefined;
  }

  /** Rows above `ordinal`, oldest first, for a sweep that goes on where it stopped. */
  *after(ordinal: number): Iterable<T> {
    const rows = this.#rows;
    for (let at = this.#indexOf(ordinal + 1); at < rows.length; at++) {
      const row = rows[at] as T;
      if (!row.gone) yield row;
    }
  }

  page<R>(limit: number, cursor: string | undefined, read: (row: T) => R): Page<R> {
    let at = cursor === undefined ? this.#rows.length : this.#indexOf(decodeCursor(cursor));
    const items: R[] = [];
    let last: T | undefined;
    while (at > 0 && items.length < limit) {
      const row = this.#rows[--at] as T;
      if (row.gone) continue;
      items.push(read(row));
      last = row;
    }
    while (at > 0 && this.#rows[at - 1]?.gone) at--;
    return { items, next: at > 0 && last ? encodeCursor(last.ordinal) : undefined };
  }

  /** The index of the first row whose ordinal is not below `ordinal`. */
  #indexOf(ordinal: number): number {
    let low = 0;
    let high = this.#rows.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if ((this.#rows[middle] as T).ordinal < ordinal) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}

const encodeCursor = (ordinal: number): string => `c${ordinal.toString(36)}`;

const decodeCursor = (cursor: string): number => {
  const ordinal = /^c[0-9a-z]{1,10}$/.test(cursor) ? Number.parseInt(cursor.slice(1), 36) : 0;
  if (ordinal < 1 || encodeCursor(ordinal) !== cursor) {
    throw new GatewayError("invalid-params", "`cursor` is not one that this list gave.");
  }
  return ordinal;
};
