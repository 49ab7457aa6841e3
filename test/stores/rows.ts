import type pg from "pg";
import { type Key, keyField, type Layout } from "#store/tables/table.ts";

/** Writes a record like a gateway whose notifications are lost. */
export async function putRow<R>(client: pg.Client, layout: Layout<R>, record: R): Promise<void> {
  const { table, key, columns } = layout;
  const names = [...Object.keys(columns), "body"];
  const values = [...Object.values(columns).map(([, of]) => of(record)), JSON.stringify(record)];
  await client.query(`delete from ${table} where ${key} = $1`, [keyField(layout)(record)]);
  const places = values.map((_, n) => `$${n + 1}`).join(", ");
  await client.query(`insert into ${table} (${names.join(", ")}) values (${places})`, values);
}

/** Reads a stored record. */
export async function readRow<R>(client: pg.Client, { table, key }: Layout<R>, of: Key): Promise<R> {
  const { rows } = await client.query(`select body from ${table} where ${key} = $1`, [of]);
  return rows[0].body;
}
