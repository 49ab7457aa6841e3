import { readText } from "../texts.ts";

/** A row as the database answers it. */
export type Row = Readonly<Record<string, unknown>>;

/** A text as a literal of SQL, whatever the server takes a backslash for. */
export const quote = (text: string): string => {
  const quoted = `'${text.replaceAll("'", "''")}'`;
  return quoted.includes("\\") ? ` E${quoted.replaceAll("\\", "\\\\")}` : quoted;
};

export const textList = (texts: Iterable<string>): string => `array[${[...texts].map(quote).join(",")}]::text[]`;
export const numberList = (numbers: Iterable<number>): string => `array[${[...numbers].join(",")}]::bigint[]`;
export const json = (value: unknown): string => quote(JSON.stringify(value));

/** A place or a time that may be none or past all numbers of a table, as one. */
export const bounded = (value: number): string =>
  String(Math.ceil(Math.min(Math.max(value, 0), Number.MAX_SAFE_INTEGER)));

// How columns are read.
export const text = (value: unknown): string => readText(value as string);
export const optionalText = (value: unknown): string | undefined =>
  value === null || value === undefined ? undefined : readText(value as string);
export const number = (value: unknown): number => value as number;
export const optional = (value: unknown): number | undefined => (value ?? undefined) as number | undefined;
