import { expect } from "vitest";

/** Checks that a record has these values. A store may leave out undefined fields. */
export function expectFields<T extends object>(record: T | undefined, fields: Partial<T>): void {
  expect(record).toEqual({ ...record, ...fields });
}
