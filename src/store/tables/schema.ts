/** The tables of a new database or file, from their layouts. Migrations convert the tables of an earlier version to the same form. */
import type { Column, ColumnType, Layout, Order } from "./table.ts";

type AnyLayout = Layout<never>;
/** For a dialect of SQL: the types of columns, and the condition that a boolean column is true. */
type Dialect = { types: Readonly<Record<ColumnType, string>>; isTrue(column: string): string };

const POSTGRES: Dialect = {
  // PostgreSQL then compares texts like this process. This collation is also the fastest.
  types: { text: `text collate "C"`, integer: "bigint", number: "double precision", boolean: "boolean" },
  isTrue: (column) => column,
};
const SQLITE: Dialect = {
  types: { text: "text", integer: "integer", number: "real", boolean: "integer" },
  isTrue: (column) => `${column} = 1`,
};

/** The free space of a page is for new versions of its rows. Small tables whose rows change with each message are vacuumed often. */
const LIVE = "fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000";
const CHANGING = "fillfactor = 70";
const CHANGING_TABLES = new Set(["sessions", "usage"]);

/**
 * Entries that were appended together, from `first_seq` on. The gateway's stream has the session 0. `at` is the time of the last entry. `calls` are
 * the tool calls of the entries, because most reads leave them out.
 */
const JOURNAL = `create table journal (
  session bigint not null,
  first_seq bigint not null,
  at bigint not null,
  body json not null,
  calls json,
  primary key (session, first_seq)
);
create index journal_at on journal using brin (at);
`;

/** The numbers of the whole store, in one row. */
const STATE = `create table gateway_state (
  single boolean primary key default true check (single),
  body json not null
) with (fillfactor = 50);
`;

/**
 * The schema of PostgreSQL. A record is `json` and not `jsonb`, which refuses texts that callers may send; for the same reason, no statement may read
 * its fields.
 */
export function postgresSchema(layouts: readonly AnyLayout[]): string {
  const tables = layouts.map((layout) => {
    const { table, key, isLive } = layout;
    const settings = isLive ? LIVE : CHANGING_TABLES.has(table) ? CHANGING : undefined;
    const columns = [...columnsOf(layout, POSTGRES, { [key]: "primary key" }), "body json not null"];
    return tableOf(table, columns, settings && ` with (${settings})`, indexesOf(layout, POSTGRES, key));
  });
  return [...tables, JOURNAL, STATE].join("\n");
}

/**
 * The tables of SQLite that may become large. The rows are stored in the table's first order if this has a unique integer for each
 * record, and otherwise in the order of the keys.
 */
export function sqliteSchema(layouts: readonly AnyLayout[]): string {
  const tables = layouts.map((layout) => {
    const { table, key, columns } = layout;
    const place = placeOf(layout) ?? key;
    const constraints = { [key]: "not null", [place]: "primary key" };
    const lines = [...columnsOf(layout, SQLITE, constraints), "body text not null"];
    const byKey = place === key ? [] : [`create unique index ${table}_by_key on ${table} (${key});`];
    const settings = columns[place]?.[0] === "integer" ? undefined : " without rowid";
    return tableOf(table, lines, settings, [...byKey, ...indexesOf(layout, SQLITE, place)]);
  });
  return tables.join("\n");
}

/** A column other than the key by which the rows of a table can be stored. Undefined if there is none. */
function placeOf({ columns, orders = {} }: AnyLayout): string | undefined {
  const [first] = Object.values(orders);
  if (!first || first.of !== undefined || first.only !== undefined || first.hasTies) return undefined;
  return columns[first.by]?.[0] === "integer" ? first.by : undefined;
}

function columnsOf(layout: AnyLayout, { types }: Dialect, constraints: { [column: string]: string }): string[] {
  return Object.entries<Column<never>>(layout.columns).map(([name, [type]]) =>
    [name, types[type], constraints[name]].filter(Boolean).join(" "),
  );
}

/** An index for each order, except the order in which the rows are stored. */
function indexesOf({ table, key, orders = {} }: AnyLayout, { isTrue }: Dialect, place: string): string[] {
  return Object.entries<Order>(orders).flatMap(([name, { by, of, only, hasTies }]) => {
    if (by === place && of === undefined && only === undefined) return [];
    const columns = [of, by, hasTies ? key : undefined].filter(Boolean).join(", ");
    const where = [...(only === undefined ? [] : [isTrue(only)]), `${by} is not null`].join(" and ");
    return `create index ${table}_${snakeCase(name)} on ${table} (${columns}) where ${where};`;
  });
}

function snakeCase(name: string): string {
  return name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
}

function tableOf(table: string, lines: readonly string[], settings = "", indexes: readonly string[]): string {
  return [`create table ${table} (\n  ${lines.join(",\n  ")}\n)${settings};`, ...indexes, ""].join("\n");
}
