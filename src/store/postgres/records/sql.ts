import { readText } from "../texts.ts";

/** A row as the database answers it. */
export type Row = Readonly<Record<string, unknown>>;

/** A value that a statement is given: as a literal, and its type. */
class Value {
  readonly literal: string;
  readonly type: string;

  constructor(literal: string, type: string) {
    this.literal = literal;
    this.type = type;
  }
}

/** A statement, or a part of one, apart from its values: a connection plans the same text only once. */
export class Sql {
  /** The text between the values. */
  readonly parts: readonly string[];
  readonly values: readonly Value[];
  #text: string | undefined;
  #literals: string | undefined;
  #id: string | undefined;

  constructor(parts: readonly string[], values: readonly Value[]) {
    this.parts = parts;
    this.values = values;
  }

  get text(): string {
    this.#text ??= this.parts.reduce((text, part, n) => `${text}$${n}::${this.values[n - 1]?.type}${part}`);
    return this.#text;
  }

  get literals(): string {
    this.#literals ??= this.values.map(({ literal }) => literal).join(", ");
    return this.#literals;
  }

  /** The text and the values in one. */
  get id(): string {
    this.#id ??= `${this.text} ${this.literals}`;
    return this.#id;
  }
}

/** Words of SQL may be put in, values, and parts of statements. */
export const sql = (texts: readonly string[], ...put: readonly (string | number | boolean | Value | Sql)[]): Sql => {
  const parts = [texts[0] ?? ""];
  const values: Value[] = [];
  const add = (text: string): void => {
    parts.push((parts.pop() ?? "") + text);
  };
  for (const [n, one] of put.entries()) {
    if (one instanceof Value) {
      values.push(one);
      parts.push("");
    } else if (one instanceof Sql) {
      values.push(...one.values);
      add(one.parts[0] ?? "");
      parts.push(...one.parts.slice(1));
    } else {
      add(String(one));
    }
    add(texts[n + 1] ?? "");
  }
  return new Sql(parts, values);
};

/** A text as a literal that is right for each way in which the server may read a backslash. */
const literalOf = (text: string): string => {
  const quoted = `'${text.replaceAll("'", "''")}'`;
  return quoted.includes("\\") ? ` E${quoted.replaceAll("\\", "\\\\")}` : quoted;
};

export const quote = (text: string): Value => new Value(literalOf(text), "text");
export const textList = (texts: Iterable<string>): Value =>
  new Value(`array[${[...texts].map(literalOf).join(",")}]::text[]`, "text[]");
export const numberList = (numbers: Iterable<number>): Value =>
  new Value(`array[${[...numbers].join(",")}]::bigint[]`, "bigint[]");
export const json = (value: unknown): Value => new Value(literalOf(JSON.stringify(value)), "json");
export const double = (value: number): Value => new Value(String(value), "double precision");

/** A place or a time that may be none or past all numbers of a table, as one. */
export const bounded = (value: number): Value =>
  new Value(String(Math.ceil(Math.min(Math.max(value, 0), Number.MAX_SAFE_INTEGER))), "bigint");

// How columns are read.
export const text = (value: unknown): string => readText(value as string);
export const optionalText = (value: unknown): string | undefined =>
  value === null || value === undefined ? undefined : readText(value as string);
export const number = (value: unknown): number => value as number;
export const optional = (value: unknown): number | undefined => (value ?? undefined) as number | undefined;
