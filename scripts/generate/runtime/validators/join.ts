import type { ValidationError } from "./validate.ts";

/** The faults found so far and those of one further part. The list is extended in place, because a copy for each part would be quadratic. */
export function join(found: ValidationError[] | null, more: ValidationError[]): ValidationError[] {
  if (found === null) return more;
  for (const fault of more) found.push(fault);
  return found;
}
