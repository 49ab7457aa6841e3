import type { Entry } from "#store/store.ts";
import { cutEntries, decodeEntries, encodeEntries } from "../entry-codec.ts";
import { bytesOf } from "../text.ts";
import type { Database, Query, Rows } from "./database.ts";
import type { Parts } from "./parts.ts";
import type { SessionRow } from "./rows.ts";
import type { TotalsRow } from "./totals.ts";

/** A row of a journal: entries that were appended together. */
export type JournalRow = readonly [lastSeq: number, body: string];

/** So many rows are looked at together. */
export const ROWS_A_LOOK = 64;
/** What a row weighs beside its body. */
export const ROW_BYTES = 24;

/** The journals of all sessions. */
export class Journal {
  readonly #totals: TotalsRow;
  readonly #rows: Rows;
  readonly #after: Query;
  readonly #below: Query;
  readonly #delete: ReturnType<Database["run"]>;

  constructor({ db, totals }: Parts) {
    this.#totals = totals;
    this.#rows = db.rows("INSERT INTO journal", 3);
    this.#after = db.query(
      `SELECT last_seq, ${bytesOf("body")} FROM journal WHERE session = ? AND last_seq > ? ORDER BY last_seq LIMIT ?`,
    );
    this.#below = db.query(
      `SELECT last_seq, ${bytesOf("body")} FROM journal WHERE session = ? AND last_seq < ? AND last_seq >= ? ORDER BY last_seq DESC LIMIT ?`,
    );
    this.#delete = db.run("DELETE FROM journal WHERE session = ? AND last_seq <= ?");
  }

  /** Appends entries, which get their `seq`, as one row. `isNew`: the first `turn.queued` among them begins a turn. */
  append(session: SessionRow, entries: readonly Entry[], isNew: boolean): void {
    let begunSeq = 0;
    for (const entry of entries) {
      entry.seq = ++session.lastSeq;
      session.updatedAt = entry.at;
      if (isNew && begunSeq === 0 && entry.name === "turn.queued") begunSeq = entry.seq;
    }
    const body = encodeEntries(entries, begunSeq);
    this.#rows.add(session.ordinal, session.lastSeq, body);
    this.#totals.addBytes(body.length + ROW_BYTES);
  }

  /** Rows that hold entries after `seq`, oldest first. */
  after(ordinal: number, seq: number, limit: number): JournalRow[] {
    this.#rows.flush();
    return this.#after.all([ordinal, seq, limit]);
  }

  /** Rows that hold entries before `seq` alone, and some from `least` on, newest first. */
  below(ordinal: number, seq: number, least: number, limit: number): JournalRow[] {
    this.#rows.flush();
    return this.#below.all([ordinal, seq, least, limit]);
  }

  entry(ordinal: number, seq: number): Entry | undefined {
    const [row] = this.after(ordinal, seq - 1, 1);
    return row && decodeEntries(row[1], row[0]).find((entry) => entry.seq === seq);
  }

  /** Erases these rows, which are the oldest of the session. */
  erase(ordinal: number, rows: readonly JournalRow[]): void {
    const last = rows.at(-1);
    if (!last) return;
    this.#delete([ordinal, last[0]]);
    for (const [, body] of rows) this.#totals.addBytes(-(body.length + ROW_BYTES));
  }

  /** Erases the entries of this row that are before `seq`. Those before the row are gone. */
  cut(ordinal: number, row: JournalRow, seq: number): void {
    this.erase(ordinal, [row]);
    const rest = cutEntries(row[1], row[0], seq);
    this.#rows.add(ordinal, row[0], rest);
    this.#totals.addBytes(rest.length + ROW_BYTES);
  }

  flush(): void {
    this.#rows.flush();
  }
}
