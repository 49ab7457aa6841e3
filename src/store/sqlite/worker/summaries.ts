import type { Compacted, Summary } from "#store/store.ts";
import { bytesOf } from "../text.ts";
import type { Database, Query, Rows } from "./database.ts";
import type { Parts } from "./parts.ts";
import type { TotalsRow } from "./totals.ts";

type Kept = Summary & { through: number; except: readonly number[] };
/** Tells of a message by its `seq` whether the summary stands for it. All below `lowest` are. */
export type Marks = { isCompacted: (seq: number) => boolean; lowest: number };

const NO_MARKS: Marks = { isCompacted: () => false, lowest: 0 };
const SUMMARY_BYTES = 48;

/** What stands for the compacted messages of each session. */
export class Summaries {
  readonly #totals: TotalsRow;
  readonly #rows: Rows;
  readonly #ofSession: Query;
  readonly #delete: ReturnType<Database["run"]>;

  constructor({ db, totals }: Parts) {
    this.#totals = totals;
    this.#rows = db.rows("INSERT INTO summaries", 2);
    this.#ofSession = db.query(`SELECT ${bytesOf("body")} FROM summaries WHERE session = ?`);
    this.#delete = db.run("DELETE FROM summaries WHERE session = ?");
  }

  put(ordinal: number, { summary: text, outside, except, through }: Compacted): void {
    const before = this.#read(ordinal)?.through ?? 0;
    this.forget(ordinal);
    const body = JSON.stringify({ text, outside, through: Math.max(through, before), except } satisfies Kept);
    this.#rows.add(ordinal, body);
    this.#totals.addBytes(body.length + SUMMARY_BYTES);
  }

  forget(ordinal: number): void {
    const body = this.#bodyOf(ordinal);
    if (body === undefined) return;
    this.#delete([ordinal]);
    this.#totals.addBytes(-(body.length + SUMMARY_BYTES));
  }

  read(ordinal: number): Summary | undefined {
    const kept = this.#read(ordinal);
    return kept && { text: kept.text, outside: kept.outside };
  }

  marksOf(ordinal: number): Marks {
    const kept = this.#read(ordinal);
    if (!kept) return NO_MARKS;
    const { through } = kept;
    const except = new Set(kept.except);
    const lowest = kept.except.reduce((low, seq) => Math.min(low, seq), through + 1);
    return { isCompacted: (seq) => seq <= through && !except.has(seq), lowest };
  }

  flush(): void {
    this.#rows.flush();
  }

  #read(ordinal: number): Kept | undefined {
    const body = this.#bodyOf(ordinal);
    return body === undefined ? undefined : (JSON.parse(body) as Kept);
  }

  #bodyOf(ordinal: number): string | undefined {
    this.#rows.flush();
    return this.#ofSession.get<[string]>([ordinal])?.[0];
  }
}
