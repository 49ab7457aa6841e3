import { bytesOf, freeBytesOf, toSql } from "../text.ts";
import type { Database, Rows } from "./database.ts";

type Kind = "turn" | "agent" | "counts" | "beat" | "announcement" | "key" | "erasure";
type Row = [kind: Kind, id: string, body: string];
type Change = { kind: Kind; id: string; record: object | undefined };

/**
 * The rows of what is held in memory whole: what has not ended, and what there is little of. They are read at the start alone, in the order
 * in which they were put first.
 */
export class LiveRows {
  readonly #db: Database;
  readonly #rows: Rows;
  readonly #delete: ReturnType<Database["run"]>;
  readonly #stored = new Set<string>();
  readonly #changes = new Map<string, Change>();

  constructor(db: Database) {
    this.#db = db;
    this.#rows = db.rows(
      "INSERT INTO live (kind, id, body)",
      3,
      "ON CONFLICT (kind, id) DO UPDATE SET body = excluded.body",
    );
    this.#delete = db.run("DELETE FROM live WHERE kind = ? AND id = ?");
  }

  load<R>(kind: Kind): R[] {
    const sql = `SELECT kind, ${freeBytesOf("id")}, ${bytesOf("body")} FROM live WHERE kind = ? ORDER BY place`;
    return this.#db
      .query(sql)
      .all<Row>([kind])
      .map(([, id, body]) => {
        this.#stored.add(`${kind} ${id}`);
        return JSON.parse(body) as R;
      });
  }

  put(kind: Kind, id: string, record: object): void {
    this.#changes.set(`${kind} ${id}`, { kind, id, record });
  }

  delete(kind: Kind, id: string): void {
    this.#changes.set(`${kind} ${id}`, { kind, id, record: undefined });
  }

  flush(): void {
    if (this.#changes.size === 0) return;
    this.#db.begin();
    for (const [name, { kind, id, record }] of this.#changes) {
      if (record) {
        this.#rows.add(kind, toSql(id), JSON.stringify(record));
        this.#stored.add(name);
      } else if (this.#stored.delete(name)) {
        this.#delete([kind, toSql(id)]);
      }
    }
    this.#rows.flush();
    this.#changes.clear();
  }
}

/** A table in memory whose records are kept as rows, too. */
export const keptLive = <R extends object, T extends { put(record: R): void }>(
  live: LiveRows,
  kind: Kind,
  table: T,
  idOf: (record: R) => string,
): T => {
  for (const record of live.load<R>(kind)) table.put(record);
  return {
    ...table,
    put: (record: R) => {
      table.put(record);
      live.put(kind, idOf(record), record);
    },
  };
};
