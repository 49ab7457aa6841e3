import { decodeText } from "../texts.ts";

/** A row of a result. */
export type Row = Readonly<Record<string, unknown>>;

/** A statement or a part of one. Its values are marked, so that statements which differ only in values share one prepared plan. */
export type Sql = string;

/** Inserts SQL keywords, parts of statements and marked values into a statement. */
export function sql(texts: readonly string[], ...inserted: readonly (Sql | number | boolean)[]): Sql {
  return String.raw({ raw: texts }, ...inserted);
}

/** The character around each value. Statements and values never contain it, because PostgreSQL does not accept it. */
const VALUE_MARK = "\0";
function markValue(literal: string, type: string): Sql {
  return `${VALUE_MARK}${literal}${VALUE_MARK}${type}${VALUE_MARK}`;
}

/** The text of a statement with a parameter for each value, and the values. */
export function planOf(statement: Sql): { text: string; values: string[] } {
  const [first = "", ...parts] = statement.split(VALUE_MARK);
  const values: string[] = [];
  let text = first;
  for (let n = 0; n < parts.length; n += 3) {
    values.push(parts[n] ?? "");
    text += `$${values.length}::${parts[n + 1]}${parts[n + 2]}`;
  }
  return { text, values };
}

/** Quotes a text as a literal that is valid with either setting of `standard_conforming_strings`. */
function literalOf(text: string): string {
  const quoted = `'${text.replaceAll(VALUE_MARK, "").replaceAll("'", "''")}'`;
  return quoted.includes("\\") ? ` E${quoted.replaceAll("\\", "\\\\")}` : quoted;
}

export function quote(text: string): Sql {
  return markValue(literalOf(text), "text");
}
/** A list of texts; undefined ones are null. */
export function textList(texts: Iterable<string | undefined>): Sql {
  const literals = [...texts].map((text) => (text === undefined ? "null" : literalOf(text)));
  return markValue(`array[${literals.join(",")}]::text[]`, "text[]");
}
export function numberList(numbers: Iterable<number>): Sql {
  return markValue(`array[${[...numbers].join(",")}]::bigint[]`, "bigint[]");
}
export function json(value: unknown): Sql {
  return markValue(literalOf(JSON.stringify(value)), "json");
}
export function double(value: number): Sql {
  return markValue(String(value), "double precision");
}

/** Limits a number to the range of a `bigint` column from 0: the given value may be negative or infinite. */
export function bounded(value: number): Sql {
  return markValue(String(Math.ceil(Math.min(Math.max(value, 0), Number.MAX_SAFE_INTEGER))), "bigint");
}

// Conversions of column values.
export function text(value: unknown): string {
  return decodeText(value as string);
}
export function optionalText(value: unknown): string | undefined {
  return value === null || value === undefined ? undefined : decodeText(value as string);
}
export function number(value: unknown): number {
  return value as number;
}
export function optional(value: unknown): number | undefined {
  return (value ?? undefined) as number | undefined;
}
