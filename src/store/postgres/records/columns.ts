import { KEYS } from "#store/tables/layouts.ts";
import type { Column, ColumnType, Layout } from "#store/tables/table.ts";
import { encodeKey, encodeText } from "../texts.ts";
import { arrayOf, type Sql, sql } from "./sql.ts";

type Field = ReturnType<Column<never>[1]>;
export type NamedColumn<R> = { readonly name: string; readonly type: ColumnType; of(record: R): Field };

const TYPES: Readonly<Record<ColumnType, string>> = {
  text: "text",
  integer: "bigint",
  number: "double precision",
  boolean: "boolean",
};

/** The columns of a layout, and their values as SQL. */
export class Columns<R> {
  readonly all: readonly NamedColumn<R>[];
  readonly key: NamedColumn<R>;
  /** The key and the columns that may change. */
  readonly changing: readonly NamedColumn<R>[];
  readonly encode: (text: string) => string;

  constructor({ table, key, columns }: Layout<R>) {
    this.all = Object.entries(columns).map(([name, [type, of]]) => ({ name, type, of }));
    this.key = this.named(key);
    const changing = this.all.filter(({ name }) => name !== key && columns[name]?.[2] !== "fixed");
    this.changing = [this.key, ...changing];
    // An index does not accept every key of callers.
    this.encode = table === KEYS.table ? encodeKey : encodeText;
  }

  named(name: string): NamedColumn<R> {
    const column = this.all.find((one) => one.name === name);
    if (!column) throw new Error(`There is no column ${name}.`);
    return column;
  }

  array({ type }: NamedColumn<R>, values: readonly Field[]): Sql {
    if (type !== "text") return arrayOf(TYPES[type], values);
    return arrayOf(
      TYPES.text,
      values.map((value) => (value === undefined ? undefined : this.encode(value as string))),
    );
  }

  /** Each column as an array, then the bodies: one row for each record. */
  rows(records: readonly R[], columns: readonly NamedColumn<R>[]): Sql {
    const arrays = columns.map((column) => this.array(column, records.map(column.of)));
    const bodies = arrayOf(
      "text",
      records.map((record) => JSON.stringify(record)),
    );
    return sql`unnest(${arrays.join(", ")}, ${bodies}::json[])`;
  }
}

export function namesOf(columns: readonly { readonly name: string }[]): string {
  return [...columns.map(({ name }) => name), "body"].join(", ");
}
