import { expect } from "vitest";

/** Checks that a record has these values. A store need not keep fields that are undefined. */
export function expectFields<T extends object>(record: T | undefined, fields: Partial<T>): void {
  expect(record).toEqual({ ...record, ...fields });
}
