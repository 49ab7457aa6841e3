/** Records as data. The declaration of a field has its type, and counts its text for the size of a record: a new field is one line. */

/** A field with values of the type T. */
export class Field<T> {
  declare readonly type: (value: T) => T;
  /** The bytes of a value, beside those that each record has. */
  readonly weigh: ((value: T) => number) | undefined;

  constructor(weigh?: (value: T) => number) {
    this.weigh = weigh;
  }
}

// biome-ignore lint/suspicious/noExplicitAny: a field of any type, whose type is inferred.
export type Fields = { readonly [name: string]: Field<any> };

/** The type of a record with these fields. */
export type TypeOf<F extends Fields> = { -readonly [Name in keyof F]: F[Name] extends Field<infer T> ? T : never };

/** A text that counts by its bytes. */
export const text = new Field<string>((value) => Buffer.byteLength(value));
/** A text that counts by its length. */
export const characters = new Field<string>(({ length }) => length);
/** A short text, which the size of each record includes. */
export const short = new Field<string>();
export const number = new Field<number>();

/** A value of some type that does not count. */
export function typed<T>(): Field<T> {
  return new Field();
}

export function optional<T>({ weigh }: Field<T>): Field<T | undefined> {
  return new Field(weigh && ((value) => (value === undefined ? 0 : weigh(value))));
}

/** A record in a record, which counts by `bytes` and its texts. */
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

/** A function that answers the size of a record: `bytes` and the bytes of its fields. */
export function weigherOf<F extends Fields>(bytes: number, fields: F): (record: TypeOf<F>) => number {
  const names = Object.keys(fields).filter((name) => fields[name]?.weigh);
  const weighers = names.map((name) => fields[name]?.weigh as (value: unknown) => number);
  return (record) => {
    let sum = bytes;
    for (let n = 0; n < names.length; n++) sum += weighers[n]?.(record[names[n] as string]) ?? 0;
    return sum;
  };
}
