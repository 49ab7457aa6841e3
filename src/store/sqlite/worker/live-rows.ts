import { type Changed, keyField, type Layout, MemoryTable } from "#store/tables/table.ts";
import { bytesOf, freeBytesOf, toSql } from "../text.ts";
import type { Database } from "./database.ts";

/**
 * The rows of the tables that are held in memory whole: unfinished work, and kinds with few records. They are read at the start
 * alone, in the order in which they were put first. `tell` is told of each record that is loaded or changed.
 */
export function liveRows(db: Database, tell: (kind: string, id: string) => void) {
  const read = db.query(`SELECT ${freeBytesOf("id")}, ${bytesOf("body")} FROM live WHERE kind = ? ORDER BY place`);
  const inPlace = "ON CONFLICT (kind, id) DO UPDATE SET body = excluded.body";
  const put = db.run(`INSERT INTO live (kind, id, body) VALUES (?, ?, ?) ${inPlace}`);
  const remove = db.run("DELETE FROM live WHERE kind = ? AND id = ?");
  const changes = new Map<string, { kind: string; id: string; record: object | undefined }>();

  /** A table in memory whose records are kept as rows, too. It begins with the rows that already exist. */
  const table = <R extends object>(layout: Layout<R>, changed: Changed<R> = () => {}): MemoryTable<R> => {
    const { table: kind, isSaved = () => true } = layout;
    const keyOf = keyField(layout);
    let isLoaded = false;
    const made = new MemoryTable(layout, (before, after) => {
      changed(before, after);
      const id = String(keyOf((after ?? before) as R));
      tell(kind, id);
      const isChange = isLoaded && !(before && after && !isSaved(before, after));
      if (isChange) changes.set(`${kind} ${id}`, { kind, id, record: after });
    });
    // An id is read to see that it is text.
    for (const [, body] of read.all<[id: string, body: string]>([kind])) made.put(JSON.parse(body) as R);
    isLoaded = true;
    return made;
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
