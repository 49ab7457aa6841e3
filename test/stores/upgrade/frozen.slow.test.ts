import { createHash } from "node:crypto";
import { expect, it } from "vitest";
import { MIGRATIONS } from "#store/postgres/migrations/migrations.ts";
import { migrations } from "#store/sqlite/migrations/all.ts";
import { openDatabase } from "#store/sqlite/worker/database.ts";
import { migrate, newestOf } from "#store/sqlite/worker/migrate.ts";
import { newPath } from "../sqlite-engine.ts";
import { makeOldFile } from "./old-sqlite.ts";

/** Digests of the released versions: the schema of a SQLite file; for PostgreSQL the oldest gateway that goes on with it, and its step. */
const SQLITE = ["8cb41eecff2f7a66", "1a5ef5b558b5ae5b", "8e4473dd77d960a4", "619aa852b0fba934"];
const POSTGRES = [
  [1, "2f8a4b4793fc1f4e"],
  [1, "e24d7daa52b3d0ee"],
  [1, "265ef50f9c263120"],
  [1, "389e0da4d0374a2d"],
  [4, "46a5a3c2c54dfb45"],
  [4, "e3b0c44298fc1c14"],
];
const ADD =
  "A version that was released never changes: add a migration. Only where this one was not released yet, put its digest here.";

const digestOf = (text: string): string => createHash("sha256").update(text).digest("hex").slice(0, 16);

/** The digest of a file of a version: the newest is a new file, and earlier ones are made as they were then. */
const sqliteDigest = (version: number): string => {
  const path = newPath();
  const isNewest = version === newestOf(migrations);
  const db = isNewest ? openDatabase(path) : makeOldFile(path, version);
  if (isNewest) migrate(db, path, 1);
  const schema = "SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL ORDER BY type DESC, name";
  const rows = db.query(schema).all<[string]>([]);
  db.close();
  const withoutComments = rows.map(([sql]) => sql.replaceAll(/\s*--.*$/gm, ""));
  return digestOf(JSON.stringify(withoutComments.map((sql) => sql.replaceAll(/\s+/g, " ").trim())));
};

it("every version of the SQLite schema is what it was when it was released", () => {
  const versions = Array.from({ length: newestOf(migrations) }, (_, n) => n + 1);
  expect(versions.map(sqliteDigest), ADD).toEqual(SQLITE);
});

it("every version of the PostgreSQL schema is what it was when it was released", () => {
  expect(
    MIGRATIONS.map(({ oldest, sql }) => [oldest, digestOf(sql)]),
    ADD,
  ).toEqual(POSTGRES);
});

it("no step takes a function away that gateways call which can go on with it", () => {
  const { oldest = 1 } = MIGRATIONS.at(-1) ?? {};
  for (const { version, sql } of MIGRATIONS) {
    if (version > oldest) expect(sql, "An older gateway still calls it.").not.toMatch(/drop function/i);
  }
});
