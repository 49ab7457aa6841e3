import Database from "libsql";
import pg from "pg";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { Servers } from "#store/postgres/connect.ts";
import { RECORD_TABLES, SHARED_TABLES } from "#store/postgres/migrations/schema.ts";
import { LARGE_LAYOUTS, LIVE_LAYOUTS } from "#store/tables/layouts.ts";
import { postgresSchema, sqliteSchema } from "#store/tables/schema.ts";
import type { Layout, Order } from "#store/tables/table.ts";
import { postgresTests } from "#test/harness/postgres.ts";

type Note = { id: string; place: number; of: string; isOpen: boolean; endsAt: number | undefined };

const NOTES = {
  table: "notes",
  key: "id",
  columns: {
    id: ["text", ({ id }) => id],
    place: ["integer", ({ place }) => place, "fixed"],
    of: ["text", ({ of }) => of, "fixed"],
    is_open: ["boolean", ({ isOpen }) => isOpen],
    ends: ["number", ({ endsAt }) => endsAt],
  },
  orders: {
    all: { by: "place" },
    openOf: { by: "place", of: "of", only: "is_open" },
    byEnd: { by: "ends", hasTies: true },
  },
} satisfies Layout<Note>;

it("gives a table of PostgreSQL its columns, and an index for each order", () => {
  expect(postgresSchema([NOTES])).toContain(`create table notes (
  id text collate "C" primary key,
  place bigint,
  of text collate "C",
  is_open boolean,
  ends double precision,
  body json not null
);
create index notes_all on notes (place) where place is not null;
create index notes_open_of on notes (of, place) where is_open and place is not null;
create index notes_by_end on notes (ends, id) where ends is not null;
`);
  expect(postgresSchema([{ ...NOTES, isLive: true }])).toContain(") with (fillfactor = 50, autovacuum_vacuum_");
});

it("gives a table of SQLite its columns, and stores the rows in the first order", () => {
  expect(sqliteSchema([NOTES])).toBe(`create table notes (
  id text not null,
  place integer primary key,
  of text,
  is_open integer,
  ends real,
  body text not null
);
create unique index notes_by_key on notes (id);
create index notes_open_of on notes (of, place) where is_open = 1 and place is not null;
create index notes_by_end on notes (ends, id) where ends is not null;
`);
  const { byEnd } = NOTES.orders;
  expect(sqliteSchema([{ ...NOTES, orders: { byEnd } }])).toContain(`id text primary key,
  place integer,
  of text,
  is_open integer,
  ends real,
  body text not null
) without rowid;
create index`);
});

type Search = { name: string; sql: string; values: number };
type Dialect = { isTrue(column: string): string; value(n: number): string };

/** A search in each order: for the first records of a group, and for the records below a bound. */
function searchesOf(layouts: readonly Layout<never>[], { isTrue, value }: Dialect): Search[] {
  return layouts.flatMap(({ table, key, orders = {} }) =>
    Object.entries<Order>(orders).flatMap(([name, { by, of, only, hasTies }]) =>
      [false, true].map((isBound) => {
        const compared = [...(of ? [`${of} =`] : []), ...(isBound ? [`${by} <`] : [])];
        const conditions = [...(only ? [isTrue(only)] : []), ...compared.map((of, n) => `${of} ${value(n + 1)}`)];
        const where = [...conditions, `${by} is not null`].join(" and ");
        const sql = `select body from ${table} where ${where} order by ${by}${hasTies ? `, ${key}` : ""} limit 10`;
        return { name: `${table} ${name}`, sql, values: compared.length };
      }),
    ),
  );
}

it("finds the records of each order of a large table of SQLite by an index", () => {
  const db = new Database(":memory:");
  db.exec(sqliteSchema(LARGE_LAYOUTS));
  for (const { name, sql } of searchesOf(LARGE_LAYOUTS, { isTrue: (column) => `${column} = 1`, value: () => "?" })) {
    const plan = db.prepare(`explain query plan ${sql}`).all() as { detail: string }[];
    const steps = plan.map(({ detail }) => detail).join("; ");
    expect(steps, name).not.toContain("TEMP B-TREE");
    expect(steps, name).toMatch(/^SEARCH|USING INDEX|^SCAN (sessions|turns|events|deliveries|notifications|usage)$/);
  }
  db.close();
});

await postgresTests((server) => {
  describe("on PostgreSQL", () => {
    let client: pg.Client;
    beforeAll(async () => {
      const url = await server.createDatabase();
      client = await new Servers([url]).connect();
      await client.query(`${RECORD_TABLES}${SHARED_TABLES}`);
    });
    afterAll(async () => await client.end());

    it("finds the records of each order by an index, with the settings of the engine", async () => {
      const dialect = { isTrue: (column: string) => column, value: (n: number) => `$${n}` };
      for (const { name, sql, values } of searchesOf([...LARGE_LAYOUTS, ...LIVE_LAYOUTS], dialect)) {
        await client.query(`prepare search as ${sql}`);
        const nulls = Array(values).fill("null").join(", ");
        const { rows } = await client.query(`explain execute search${nulls && `(${nulls})`}`);
        const plan = rows.map((row) => row["QUERY PLAN"]).join("\n");
        expect(plan, name).toContain("Index Scan using");
        expect(plan, name).not.toMatch(/Seq Scan|Sort|Filter/);
        await client.query("deallocate search");
      }
    });

    it("has one row for the state of the store", async () => {
      const { rows } = await client.query("select body from gateway_state");
      expect(rows).toHaveLength(1);
      await expect(client.query("insert into gateway_state (body) values ('{}')")).rejects.toThrow(pg.DatabaseError);
    });
  });
});
