import { encodeText } from "../texts.ts";
import { arrayOf, double, quote, type Row, sql } from "./sql.ts";
import type { NamedSql, Part, Transaction } from "./transaction.ts";

/** The number of requests of a key in each slice of a window. `widthMs` is the duration of a slice. */
export type Rate = {
  readonly slices: readonly number[];
  readonly counts: readonly number[];
  readonly widthMs: number;
  readonly endsAt: number;
};

/** The counted requests of keys. */
export class Rates implements Part {
  readonly #transaction: Transaction;
  readonly #changed = new Map<string, Rate>();

  constructor(transaction: Transaction) {
    this.#transaction = transaction;
    transaction.add(this);
  }

  find(key: string): Rate | undefined {
    const found = sql`select slices, counts, width_ms, ends_at from rate_counts where key = ${quote(encodeText(key))}`;
    const [row] = this.#transaction.read("rate_counts_load", found);
    return this.#changed.get(key) ?? (row && readRate(row));
  }

  put(key: string, rate: Rate): void {
    this.#changed.set(key, rate);
  }

  reset(): void {
    this.#changed.clear();
  }

  saved(): NamedSql[] {
    return [...this.#changed].map(([key, { slices, counts, widthMs, endsAt }]) => ({
      name: "rate_counts_save",
      sql: sql`insert into rate_counts (key, slices, counts, width_ms, ends_at) values (${quote(encodeText(key))},
        ${arrayOf("bigint", slices)}, ${arrayOf("integer", counts)}, ${double(widthMs)}, ${double(endsAt)})
        on conflict (key) do update set slices = excluded.slices, counts = excluded.counts, width_ms = excluded.width_ms, ends_at = excluded.ends_at`,
    }));
  }
}

function readRate(row: Row): Rate {
  return {
    slices: (row.slices as string[]).map(Number),
    counts: row.counts as number[],
    widthMs: row.width_ms as number,
    endsAt: row.ends_at as number,
  };
}
