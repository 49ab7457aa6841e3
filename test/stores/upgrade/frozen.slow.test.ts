import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { MIGRATIONS } from "#store/postgres/migrations/migrations.ts";
import { migrations } from "#store/sqlite/migrations/all.ts";
import { newestOf } from "#store/sqlite/worker/migrate.ts";
import { currentSchemas, type Frozen, sqliteSchema } from "./schemas.ts";

const FREEZE = "npx tsx test/stores/upgrade/freeze.ts";
const ADD = `A version that was released never changes: add a migration. Only where this one was not released yet, take it as it is: ${FREEZE}`;

const frozen = JSON.parse(readFileSync(join(import.meta.dirname, "frozen.json"), "utf8")) as Frozen;

it("every version of the SQLite schema is what it was when it was frozen", () => {
  expect(frozen.sqlite.at(-1)?.version, ADD).toBe(newestOf(migrations));
  for (const { version, schema } of frozen.sqlite) expect(sqliteSchema(version), ADD).toEqual(schema);
});

it("every version of the PostgreSQL schema is what it was when it was frozen", () => {
  const { postgres } = currentSchemas(frozen);
  expect(frozen.postgres, ADD).toEqual(postgres);
});

it("no step takes a function away that gateways call which can go on with it", () => {
  const { oldest = 1 } = MIGRATIONS.at(-1) ?? {};
  for (const { version, sql } of MIGRATIONS) {
    if (version > oldest) expect(sql, "An older gateway still calls it.").not.toMatch(/drop function/i);
  }
});
