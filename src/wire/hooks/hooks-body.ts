import type { HooksOperation } from "#generated/hooks-handlers.ts";
import { bodies } from "#generated/validators/hooks.js";
import { parseJson } from "#wire/call/body.ts";
import { faultOf, invalidBody } from "#wire/call/body-fault.ts";

/** The body of an operation, held to the contract, with its defaults filled in. */
export const readHookBody = (operation: HooksOperation, raw: Buffer): unknown => {
  const body = parseJson(raw);
  const validate = bodies[operation];
  if (!validate(body)) throw invalidBody(faultOf(validate.errors?.[0], body));
  return body;
};
