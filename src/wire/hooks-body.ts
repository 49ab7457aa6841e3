import type { HooksOperation } from "#generated/hooks-handlers.ts";
import { bodies } from "#generated/validators/hooks.js";
import type { ValidationError } from "#generated/validators/validate.ts";
import { parseJson } from "./body.ts";
import { type BodyFault, faultOf, invalidBody } from "./body-fault.ts";

/** The body of an operation, held to the contract, with its defaults filled in. */
export const readHookBody = (operation: HooksOperation, raw: Buffer): unknown => {
  const body = parseJson(raw);
  const validate = bodies[operation];
  if (!validate(body)) throw invalidBody(faultIn(validate.errors?.[0], body));
  return body;
};

const faultIn = (fault: ValidationError | undefined, body: unknown): BodyFault =>
  // Only sessions have a form.
  fault?.keyword === "pattern"
    ? { pointer: fault.instancePath, message: "must have the form webhook:<name>, of printable characters" }
    : faultOf(fault, body);
