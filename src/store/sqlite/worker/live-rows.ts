import { LIVE_LAYOUTS } from "#store/tables/layouts.ts";
import { type Changed, type Layout, MemoryTable } from "#store/tables/table.ts";
import { bytesOf, freeBytesOf, toSql } from "../text.ts";
import type { Database } from "./database.ts";

/**
 * The rows of the tables that are completely in memory: unfinished work, and tables with few records. They are read once, at the start.
 * `notify` is called with the table and the id of each record that is loaded or changed.
 */
export function liveRows(db: Database, notify: (kind: string, id: string) => void) {
  const read = db.query(`SELECT ${freeBytesOf("id")}, ${bytesOf("body")} FROM live WHERE kind = ?`);
  const inPlace = "ON CONFLICT (kind, id) DO UPDATE SET body = excluded.body";
  const put = db.run(`INSERT INTO live (kind, id, body) VALUES (?, ?, ?) ${inPlace}`);
  const remove = db.run("DELETE FROM live WHERE kind = ? AND id = ?");
  const changes = new Map<string, { kind: string; id: string; record: object | undefined }>();

  /** The listeners for changes, by the name of the table. */
  const listeners = new Map<string, Changed<never>>();
  const load = <R extends object>(layout: Layout<R>): MemoryTable<R> => {
    const { table: kind, isSaved = () => true } = layout;
    const made = new MemoryTable<R>(layout, (before, after) => {
      (listeners.get(kind) as Changed<R> | undefined)?.(before, after);
      const id = String(made.keyOf((after ?? before) as R));
      notify(kind, id);
      if (before && after && !isSaved(before, after)) return;
      changes.set(`${kind} ${id}`, { kind, id, record: after });
    });
    // An id is read to see that it is text.
    for (const [id, body] of read.all<[id: string, body: string]>([kind])) {
      made.load(JSON.parse(body) as R);
      notify(kind, String(id));
    }
    return made;
  };
  const tables = new Map(LIVE_LAYOUTS.map((layout: Layout<never>) => [layout.table, load(layout)]));

  /** The table in memory of a layout. Its changes are also written to rows. */
  const table = <R extends object>({ table: kind }: Layout<R>, changed?: Changed<R>): MemoryTable<R> => {
    if (changed) listeners.set(kind, changed);
    return tables.get(kind) as unknown as MemoryTable<R>;
  };

  const flush = (): void => {
    if (changes.size === 0) return;
    db.begin();
    for (const { kind, id, record } of changes.values()) {
      if (record) put(kind, toSql(id), JSON.stringify(record));
      else remove(kind, toSql(id));
    }
    changes.clear();
  };

  return { table, flush };
}
