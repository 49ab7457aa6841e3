import { writeFileSync } from "node:fs";
import Libsql from "libsql";
import { expect, it, onTestFinished } from "vitest";
import { type BeatRecord, isOfStranger } from "#store/rules/records.ts";
import { start } from "#store/sqlite/schema.ts";
import { freeBytesOf } from "#store/sqlite/text.ts";
import { type Database, openDatabase } from "#store/sqlite/worker/database.ts";
import { migrate } from "#store/sqlite/worker/migrate.ts";
import { decodeEntries } from "#store/tables/journal-rows.ts";
import {
  DELIVERIES,
  LARGE_LAYOUTS,
  LIVE_LAYOUTS,
  NOTIFICATIONS,
  weighDelivery,
  weighEntry,
} from "#store/tables/layouts.ts";
import type { Column, Layout } from "#store/tables/table.ts";
import type { State } from "#store/tables/table-records.ts";
import { newPath } from "../sqlite-engine.ts";
import { fixture } from "./released.ts";

type AnyLayout = Layout<Record<string, never>>;

/** A file of version 0.2.0 after these statements. */
function released(statements = ""): { db: Database; path: string } {
  const path = newPath();
  for (const suffix of ["", "-wal"]) writeFileSync(`${path}${suffix}`, fixture(`sqlite${suffix}`));
  const db = openDatabase(path);
  onTestFinished(() => db.close());
  db.exec(statements);
  return { db, path };
}

/** The same, upgraded. */
function upgraded(statements = ""): Database {
  const { db, path } = released(statements);
  expect(migrate(db, path, 1)).toBe(4);
  return db;
}

function catalogOf(rows: readonly [name: string, sql: string][]): string[] {
  const normalized = rows.map(([, sql]) =>
    sql
      .toLowerCase()
      .replace(/"|--.*/g, "")
      .replace(/\s*([(),]|\s)\s*/g, "$1"),
  );
  return normalized.map((sql) => sql.replaceAll(/\s+/g, " ")).sort();
}

function bodiesOf<T>(db: Database, from: string): T[] {
  const rows = db.query(`SELECT CAST(body AS BLOB) FROM ${from}`).all<[string]>([]);
  return rows.map(([body]) => JSON.parse(body) as T);
}

function stateOf(db: Database): State {
  return bodiesOf<State>(db, "live WHERE kind = 'all'")[0] as State;
}

it("gives a file of version 0.2.0 the tables and indexes of a new file", () => {
  const query = "SELECT name, sql FROM sqlite_schema WHERE sql IS NOT NULL";
  const fresh = new Libsql(":memory:");
  fresh.exec(start.sql);
  const expected = fresh.prepare(query).raw().all() as [string, string][];
  fresh.close();
  expect(catalogOf(upgraded().query(query).all([]))).toEqual(catalogOf(expected));
});

/** A counter with a name of 300 characters. Its key has the whole name. */
const LONG_COUNTER = `INSERT INTO usage SELECT substr(counter, 1, 14) || '["m","' || name || '","rest","c"]', hour, json_set(body, '$.model', name)
  FROM usage, (SELECT hex(zeroblob(150)) AS name) LIMIT 1`;

it("gives each row of version 0.2.0 the columns of its record", () => {
  const db = upgraded(LONG_COUNTER);
  for (const { table, columns } of LARGE_LAYOUTS as readonly unknown[] as AnyLayout[]) {
    // Version 0.2.0 has no notifications.
    if (table === NOTIFICATIONS.table) continue;
    const fields = Object.entries<Column<Record<string, never>>>(columns);
    const names = fields.map(([name]) => freeBytesOf(name)).join(", ");
    const rows = db.query(`SELECT CAST(body AS BLOB), ${names} FROM ${table}`).all<[string, ...unknown[]]>([]);
    expect(rows, table).not.toEqual([]);
    for (const [body, ...values] of rows) {
      const record = JSON.parse(body);
      const expected = fields
        .map(([, [, of]]) => of(record) ?? null)
        .map((of) => (typeof of === "boolean" ? Number(of) : of));
      expect(values, table).toEqual(expected);
    }
  }
  const kinds = db.query("SELECT DISTINCT kind FROM live").all<[string]>([]).flat();
  expect(["all", ...LIVE_LAYOUTS.map(({ table }) => table)]).toEqual(expect.arrayContaining(kinds));
});

it("counts the records of version 0.2.0 as this version does", () => {
  const db = upgraded();
  const state = stateOf(db);
  const weighed = [...LARGE_LAYOUTS, ...LIVE_LAYOUTS] as readonly unknown[] as AnyLayout[];
  const entries = bodiesOf<[]>(db, "journal WHERE session > 0").flatMap((row) => decodeEntries(row));
  let bytes = entries.reduce((sum, entry) => sum + weighEntry(entry as Parameters<typeof weighEntry>[0]), 0);
  for (const { table, weigh, isLive } of weighed) {
    if (!weigh) continue;
    const records = bodiesOf<Record<string, never>>(db, isLive ? `live WHERE kind = '${table}'` : table);
    for (const record of records) bytes += weigh(record);
  }
  expect(state.bytes).toBe(bytes);
  const deliveries = bodiesOf<Parameters<typeof weighDelivery>[0]>(db, DELIVERIES.table);
  for (const [shelf, isRefused] of [
    ["refused", true],
    ["others", false],
  ] as const) {
    const own = deliveries.filter((record) => isOfStranger(record) === isRefused);
    expect(state.shelves[shelf]).toEqual({
      size: own.length,
      bytes: own.reduce((sum, record) => sum + weighDelivery(record), 0),
      ended: own.filter(({ endedOrder }) => endedOrder !== undefined).length,
    });
  }
  const counts = bodiesOf<Record<string, number>>(db, "live WHERE kind = 'agent_counts'");
  for (const [name, total] of Object.entries(state.open)) {
    expect(
      counts.reduce((sum, count) => sum + (count[name] ?? Number.NaN), 0),
      name,
    ).toBe(total);
  }
});

it.each([
  ["deliveries", "delivery_id", "body = replace(body, '}', '')"],
  ["deliveries", "delivery_id", `body = replace(body, '"headers"', '"headerz"')`],
  ["events", "event_id", "body = substr(body, 2)"],
  ["events", "event_id", `body = replace(body, '"event":', '"evnt":')`],
  ["live", "id", "body = substr(body, 2)", "kind = 'turn'"],
  ["meta", "name", "value = substr(value, 2)", "name = 'state'"],
])(
  "names a damaged record of version 0.2.0 in the table %s, and leaves the file as it is",
  (table, key, damage, of = "true") => {
    const { db, path } = released();
    const [name] =
      db.query(`SELECT ${freeBytesOf(key)} FROM ${table} WHERE ${of} ORDER BY ${key} LIMIT 1`).get<[string]>([]) ?? [];
    db.exec(`UPDATE ${table} SET ${damage} WHERE ${key} = '${name}'`);
    const reason = `the record ${name} of the table ${table} is damaged. Restore a backup, or correct or delete this record`;
    expect(() => migrate(db, path, 1)).toThrow(
      `The SQLite file ${path} could not be upgraded from version 4 to 5 (${reason}). It still has version 4.`,
    );
    expect(db.query("PRAGMA user_version").get([])).toEqual([4]);
    db.exec(`DELETE FROM ${table} WHERE ${key} = '${name}' AND ${of} AND '${table}' <> 'meta'`);
    if (table !== "meta") expect(migrate(db, path, 1)).toBe(4);
  },
);

it("gives a beat of version 0.2.0 all its open turns, and first waits for the oldest", () => {
  const { db, path } = released();
  const from = "live WHERE kind = 'turn' AND body ->> '$.open.events' IS NOT NULL";
  const [turn] = bodiesOf<{ turn: { turnId: string; agent: string }; open: { events: { ids: string[] } } }>(db, from);
  if (!turn) throw new Error("the file has an open turn of a beat");
  const { turnId, agent } = turn.turn;
  const later = `json_set(body, '$.turn.turnId', 'turn_z', '$.open.events.ids', json('["evt_z"]'))`;
  db.exec(`INSERT INTO live (kind, id, body) SELECT kind, 'turn_z', ${later} FROM ${from}`);
  migrate(db, path, 1);
  const [beat] = bodiesOf<BeatRecord>(db, `live WHERE kind = 'beats' AND id = '${agent}'`);
  const events = turn.open.events.ids.length + 1;
  expect(beat?.run).toMatchObject({ events, turnIds: [turnId, "turn_z"], openTurnId: turnId });
});
