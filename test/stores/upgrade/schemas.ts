import { createHash } from "node:crypto";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { MIGRATIONS } from "#store/postgres/migrations/migrations.ts";
import { migrations } from "#store/sqlite/migrations/all.ts";
import { openDatabase } from "#store/sqlite/worker/database.ts";
import { migrate, newestOf } from "#store/sqlite/worker/migrate.ts";
import { makeOldFile } from "./old-sqlite.ts";

/** Holds the schema of each version as it was released. */
export type Frozen = {
  /** The schema of a SQLite file of that version. */
  sqlite: { version: number; schema: string[] }[];
  /** The tables, and the functions that gateways of that version call, where it has some. */
  postgres: { version: number; oldest: number; tables: string; functions?: string; signatures?: string[] }[];
};

const digestOf = (text: string): string => createHash("sha256").update(text).digest("hex").slice(0, 16);

/** A file of a version: the newest is a new file, and earlier ones are made as they were then. */
export const sqliteSchema = (version: number): string[] => {
  const folder = mkdtempSync(join(tmpdir(), "gateway-schema-"));
  try {
    const path = join(folder, "store.db");
    const isNewest = version === newestOf(migrations);
    const db = isNewest ? openDatabase(path) : makeOldFile(path, version);
    if (isNewest) migrate(db, path, 1);
    const rows = db
      .query("SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL ORDER BY type DESC, name")
      .all<[string]>([]);
    db.close();
    return rows.map(([sql]) =>
      sql
        .replaceAll(/\s*--.*$/gm, "")
        .replaceAll(/\s+/g, " ")
        .trim(),
    );
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
};

/** The schemas as they are now; versions that were frozen before stay as they were then. */
export const currentSchemas = (before?: Frozen): Frozen => ({
  sqlite: [0, ...migrations.keys()].map((_, n) =>
    before?.sqlite[n] && n < migrations.length ? before.sqlite[n] : { version: n + 1, schema: sqliteSchema(n + 1) },
  ),
  postgres: MIGRATIONS.map(({ version, oldest, sql }, n) => {
    return { ...before?.postgres[n], version, oldest, tables: digestOf(sql) };
  }),
});
