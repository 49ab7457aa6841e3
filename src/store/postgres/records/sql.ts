import { readText } from "../texts.ts";

/** A row as the database answers it. */
export type Row = Readonly<Record<string, unknown>>;

/** A statement, or a part of one. Its values stand apart from its text, so that a connection plans the same text only once. */
export type Sql = string;

/** Puts words of SQL, parts of statements and the values below into a statement. */
export const sql = (texts: readonly string[], ...put: readonly (Sql | number | boolean)[]): Sql =>
  String.raw({ raw: texts }, ...put);

/** No text of a statement or a value has this character: PostgreSQL takes none. */
const APART = "\0";
const setApart = (literal: string, type: string): Sql => `${APART}${literal}${APART}${type}${APART}`;

/** The text of a statement with a parameter for each value, and the values. */
export const planOf = (statement: Sql): { text: string; values: string[] } => {
  const [first = "", ...parts] = statement.split(APART);
  const values: string[] = [];
  let text = first;
  for (let n = 0; n < parts.length; n += 3) {
    values.push(parts[n] ?? "");
    text += `$${values.length}::${parts[n + 1]}${parts[n + 2]}`;
  }
  return { text, values };
};

/** A text as a literal that is right for each way in which the server may read a backslash. */
const literalOf = (text: string): string => {
  const quoted = `'${text.replaceAll(APART, "").replaceAll("'", "''")}'`;
  return quoted.includes("\\") ? ` E${quoted.replaceAll("\\", "\\\\")}` : quoted;
};

export const quote = (text: string): Sql => setApart(literalOf(text), "text");
export const textList = (texts: Iterable<string>): Sql =>
  setApart(`array[${[...texts].map(literalOf).join(",")}]::text[]`, "text[]");
export const numberList = (numbers: Iterable<number>): Sql =>
  setApart(`array[${[...numbers].join(",")}]::bigint[]`, "bigint[]");
export const json = (value: unknown): Sql => setApart(literalOf(JSON.stringify(value)), "json");
export const double = (value: number): Sql => setApart(String(value), "double precision");

/** A place or a time that may be none or past all numbers of a table, as one. */
export const bounded = (value: number): Sql =>
  setApart(String(Math.ceil(Math.min(Math.max(value, 0), Number.MAX_SAFE_INTEGER))), "bigint");

// How columns are read.
export const text = (value: unknown): string => readText(value as string);
export const optionalText = (value: unknown): string | undefined =>
  value === null || value === undefined ? undefined : readText(value as string);
export const number = (value: unknown): number => value as number;
export const optional = (value: unknown): number | undefined => (value ?? undefined) as number | undefined;
