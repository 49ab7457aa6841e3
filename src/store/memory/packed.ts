/**
 * A record as text. What is over is kept so: to the garbage collector it is one object, not twenty, and it walks through all that is kept
 * while callers wait.
 */
export type Packed = string;

export const pack = (record: object): Packed => JSON.stringify(record);

export const unpack = <R extends object>(kept: R | Packed): R =>
  typeof kept === "string" ? (JSON.parse(kept) as R) : kept;
