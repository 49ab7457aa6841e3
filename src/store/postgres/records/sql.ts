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
export function textList(texts: readonly (string | undefined)[]): Sql {
  return arrayOf("text", texts);
}
/** An array of values of an SQL type. An undefined value is null. */
export function arrayOf(type: string, values: readonly (string | number | boolean | undefined)[]): Sql {
  if (type !== "text") return markValue(`'{${values.map((value = "null") => finite(value)).join(",")}}'`, `${type}[]`);
  const literals = values.map((value) => (value === undefined ? "null" : literalOf(String(value))));
  return markValue(`array[${literals.join(",")}]::text[]`, "text[]");
}
function finite<T>(value: T): T | number {
  return typeof value === "number" ? Math.min(Math.max(value, -Number.MAX_VALUE), Number.MAX_VALUE) : value;
}
export function numberList(numbers: readonly number[]): Sql {
  return arrayOf("bigint", numbers);
}
export function json(value: unknown): Sql {
  return markValue(literalOf(JSON.stringify(value)), "json");
}
export function double(value: number): Sql {
  return markValue(String(finite(value)), "double precision");
}
export function truth(value: boolean): Sql {
  return markValue(String(value), "boolean");
}

/** A whole number: the given value may be infinite. */
export function integer(value: number): Sql {
  return markValue(String(Math.ceil(Math.min(Math.max(value, -MOST), MOST))), "bigint");
}

const MOST = Number.MAX_SAFE_INTEGER;
