/** Declarations of records. The declaration of a field gives its type and its part of the size of a record. */

/** A field with values of the type T. */
export class Field<T> {
  declare readonly type: (value: T) => T;
  /** The bytes of a value, in addition to the base size of its record. */
  readonly weigh: ((value: T) => number) | undefined;

  constructor(weigh?: (value: T) => number) {
    this.weigh = weigh;
  }
}

// biome-ignore lint/suspicious/noExplicitAny: a field of any type, whose type is inferred.
export type Fields = { readonly [name: string]: Field<any> };

/** The type of a record with these fields. */
export type TypeOf<F extends Fields> = { -readonly [Name in keyof F]: F[Name] extends Field<infer T> ? T : never };

/** A text whose size is its number of bytes. */
export const text = new Field<string>((value) => Buffer.byteLength(value));
/** A text whose size is its length. */
export const characters = new Field<string>(({ length }) => length);
/** A short text, which the size of each record includes. */
export const short = new Field<string>();
export const number = new Field<number>();

/** A value of any type. It does not count for the size. */
export function typed<T>(): Field<T> {
  return new Field();
}

export function optional<T>({ weigh }: Field<T>): Field<T | undefined> {
  return new Field(weigh && ((value) => (value === undefined ? 0 : weigh(value))));
}

/** A nested record. Its size is `bytes` plus the size of its fields. */
export function nested<F extends Fields>(fields: F, bytes = 0): Field<TypeOf<F>> {
  return new Field(weigherOf(bytes, fields));
}

export function listOf<T>({ weigh = () => 0 }: Field<T>): Field<readonly T[]> {
  return new Field((values) => {
    let sum = 0;
    for (const value of values) sum += weigh(value);
    return sum;
  });
}

/** Returns a function that calculates the size of a record: `bytes` plus the size of its fields. */
export function weigherOf<F extends Fields>(bytes: number, fields: F): (record: TypeOf<F>) => number {
  const names = Object.keys(fields).filter((name) => fields[name]?.weigh);
  const weighers = names.map((name) => fields[name]?.weigh as (value: unknown) => number);
  return (record) => {
    let sum = bytes;
    for (let n = 0; n < names.length; n++) sum += weighers[n]?.(record[names[n] as string]) ?? 0;
    return sum;
  };
}
