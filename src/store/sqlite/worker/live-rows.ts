import { type Changed, keyField, type Layout, MemoryTable } from "#store/local/tables.ts";
import { bytesOf, freeBytesOf, toSql } from "../text.ts";
import type { Database, Query, Run } from "./database.ts";

type Change = { kind: string; id: string; record: object | undefined };

/**
 * The rows of the tables that are held in memory whole: unfinished work, and kinds with few records. They are read at the start
 * alone, in the order in which they were put first.
 */
export class LiveRows {
  readonly #db: Database;
  readonly #changed: (kind: string, id: string) => void;
  readonly #read: Query;
  readonly #put: Run;
  readonly #delete: Run;
  readonly #changes = new Map<string, Change>();

  /** `changed` is told of each record that is loaded or changed. */
  constructor(db: Database, changed: (kind: string, id: string) => void) {
    this.#db = db;
    this.#changed = changed;
    this.#read = db.query(`SELECT ${freeBytesOf("id")}, ${bytesOf("body")} FROM live WHERE kind = ? ORDER BY place`);
    const inPlace = "ON CONFLICT (kind, id) DO UPDATE SET body = excluded.body";
    this.#put = db.run(`INSERT INTO live (kind, id, body) VALUES (?, ?, ?) ${inPlace}`);
    this.#delete = db.run("DELETE FROM live WHERE kind = ? AND id = ?");
  }

  /** A table in memory whose records are kept as rows, too. It begins with the rows that already exist. */
  table<R extends object>(layout: Layout<R>, changed: Changed<R> = () => {}): MemoryTable<R> {
    const { table: kind, isSaved = () => true } = layout;
    const keyOf = keyField(layout);
    let isLoaded = false;
    const table = new MemoryTable(layout, (before, after) => {
      changed(before, after);
      const id = String(keyOf((after ?? before) as R));
      this.#changed(kind, id);
      const isChange = isLoaded && !(before && after && !isSaved(before, after));
      if (isChange) this.#changes.set(`${kind} ${id}`, { kind, id, record: after });
    });
    // An id is read to see that it is text.
    for (const [, body] of this.#read.all<[id: string, body: string]>([kind])) table.put(JSON.parse(body) as R);
    isLoaded = true;
    return table;
  }

  flush(): void {
    if (this.#changes.size === 0) return;
    this.#db.begin();
    for (const { kind, id, record } of this.#changes.values()) {
      if (record) this.#put(kind, toSql(id), JSON.stringify(record));
      else this.#delete(kind, toSql(id));
    }
    this.#changes.clear();
  }
}
