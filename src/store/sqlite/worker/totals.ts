import { NO_TOTALS, type Totals } from "../messages.ts";
import { bytesOf } from "../text.ts";
import type { Database, Rows } from "./database.ts";

/** The counts of `stats()`. They are kept in the file with each batch, as counting anew takes long. */
export class TotalsRow {
  readonly counts: Totals;
  readonly #row: Rows;
  #kept: string;

  constructor(db: Database) {
    this.#row = db.rows("INSERT OR REPLACE INTO meta", 2);
    const [kept] = db.query(`SELECT ${bytesOf("value")} FROM meta WHERE name = 'totals'`).get<[string]>([]) ?? [];
    this.counts = kept === undefined ? { ...NO_TOTALS } : { ...NO_TOTALS, ...(JSON.parse(kept) as Partial<Totals>) };
    this.#kept = kept ?? "";
  }

  /** Counts bytes that are kept, or less when they are gone. */
  addBytes(bytes: number): void {
    this.counts.bytes += bytes;
  }

  flush(): void {
    const text = JSON.stringify(this.counts);
    if (text === this.#kept) return;
    this.#kept = text;
    this.#row.add("totals", text);
    this.#row.flush();
  }
}
