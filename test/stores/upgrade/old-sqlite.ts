import { readFileSync } from "node:fs";
import { join } from "node:path";
import { migrations } from "#store/sqlite/migrations/all.ts";
import { type Database, openDatabase } from "#store/sqlite/worker/database.ts";
import { APPLICATION_ID, migrate } from "#store/sqlite/worker/migrate.ts";

const read = (name: string): string => readFileSync(join(import.meta.dirname, name), "utf8");

/** Makes a file of an earlier version, with the rows of `fixture` where one is given. */
export const makeOldFile = (path: string, version: number, fixture?: string): Database => {
  const db = openDatabase(path);
  db.exec(read("version-1/sqlite-schema.sql"));
  db.exec(`PRAGMA application_id = ${APPLICATION_ID}`);
  db.exec("PRAGMA user_version = 1");
  migrate(db, path, 1, migrations.slice(0, version - 1));
  if (fixture === undefined) db.exec("INSERT INTO meta (name, value) VALUES ('epoch', 'old')");
  else db.exec(read(fixture));
  return db;
};
