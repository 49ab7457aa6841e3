import { readText } from "../texts.ts";

/** A row as the database answers it. */
export type Row = Readonly<Record<string, unknown>>;

/** A statement, or a part of one. Its values stand apart from its text, so that a connection plans the same text only once. */
export type Sql = string;

/** Puts words of SQL, parts of statements and the values below into a statement. */
export function sql(texts: readonly string[], ...put: readonly (Sql | number | boolean)[]): Sql {
  return String.raw({ raw: texts }, ...put);
}

/** No text of a statement or a value has this character: PostgreSQL takes none. */
const APART = "\0";
function setApart(literal: string, type: string): Sql {
  return `${APART}${literal}${APART}${type}${APART}`;
}

/** The text of a statement with a parameter for each value, and the values. */
export function planOf(statement: Sql): { text: string; values: string[] } {
  const [first = "", ...parts] = statement.split(APART);
  const values: string[] = [];
  let text = first;
  for (let n = 0; n < parts.length; n += 3) {
    values.push(parts[n] ?? "");
    text += `$${values.length}::${parts[n + 1]}${parts[n + 2]}`;
  }
  return { text, values };
}

/** A text as a literal that is right for each way in which the server may read a backslash. */
function literalOf(text: string): string {
  const quoted = `'${text.replaceAll(APART, "").replaceAll("'", "''")}'`;
  return quoted.includes("\\") ? ` E${quoted.replaceAll("\\", "\\\\")}` : quoted;
}

export function quote(text: string): Sql {
  return setApart(literalOf(text), "text");
}
export function textList(texts: Iterable<string>): Sql {
  return setApart(`array[${[...texts].map(literalOf).join(",")}]::text[]`, "text[]");
}
export function numberList(numbers: Iterable<number>): Sql {
  return setApart(`array[${[...numbers].join(",")}]::bigint[]`, "bigint[]");
}
export function json(value: unknown): Sql {
  return setApart(literalOf(JSON.stringify(value)), "json");
}
export function double(value: number): Sql {
  return setApart(String(value), "double precision");
}

/** A place or a time that may be none or past all numbers of a table, as one. */
export function bounded(value: number): Sql {
  return setApart(String(Math.ceil(Math.min(Math.max(value, 0), Number.MAX_SAFE_INTEGER))), "bigint");
}

// How columns are read.
export function text(value: unknown): string {
  return readText(value as string);
}
export function optionalText(value: unknown): string | undefined {
  return value === null || value === undefined ? undefined : readText(value as string);
}
export function number(value: unknown): number {
  return value as number;
}
export function optional(value: unknown): number | undefined {
  return (value ?? undefined) as number | undefined;
}
