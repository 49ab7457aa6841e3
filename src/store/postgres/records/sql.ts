import { readText } from "../texts.ts";

/** A row as the database answers it. */
export type Row = Readonly<Record<string, unknown>>;

/** A statement, or a part of one. */
export type Sql = string;

/** Puts words of SQL, parts of statements and the literals below into a statement. */
export const sql = (texts: readonly string[], ...put: readonly (Sql | number | boolean)[]): Sql =>
  String.raw({ raw: texts }, ...put);

/** A text as a literal that is right for each way in which the server may read a backslash. */
export const quote = (text: string): Sql => {
  const quoted = `'${text.replaceAll("'", "''")}'`;
  return quoted.includes("\\") ? ` E${quoted.replaceAll("\\", "\\\\")}` : quoted;
};

export const textList = (texts: Iterable<string>): Sql => `array[${[...texts].map(quote).join(",")}]::text[]`;
export const numberList = (numbers: Iterable<number>): Sql => `array[${[...numbers].join(",")}]::bigint[]`;
export const json = (value: unknown): Sql => `${quote(JSON.stringify(value))}::json`;
export const double = (value: number): Sql => `${value}::double precision`;

/** A place or a time that may be none or past all numbers of a table, as one. */
export const bounded = (value: number): Sql =>
  `${Math.ceil(Math.min(Math.max(value, 0), Number.MAX_SAFE_INTEGER))}::bigint`;

// How columns are read.
export const text = (value: unknown): string => readText(value as string);
export const optionalText = (value: unknown): string | undefined =>
  value === null || value === undefined ? undefined : readText(value as string);
export const number = (value: unknown): number => value as number;
export const optional = (value: unknown): number | undefined => (value ?? undefined) as number | undefined;
