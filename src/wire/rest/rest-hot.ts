import { bodies } from "#generated/validators/rest-bodies.js";
import { isIdempotencyKey } from "#wire/call/idempotency-key.ts";
import type { Asked, ValidateRequest } from "./rest-validation.ts";

/**
 * Holds the bodies of operations that are called all the time to validators that were compiled ahead, as to go through Express costs a short
 * turn more than all the rest. What these do not take, or do not look at, `validate` judges: no refusal is theirs.
 */
export const holdHot =
  (validate: ValidateRequest): ValidateRequest =>
  async (asked, body, route) => {
    const isTaken = bodies[route.operation as keyof typeof bodies];
    return isTaken && isPlain(asked) && isTaken(body) ? { body, query: {} } : await validate(asked, body, route);
  };

/** Nothing is said beside the body but, perhaps, a key that is one. */
const isPlain = ({ url = "", headers }: Asked): boolean => {
  if (url.includes("?")) return false;
  const key = headers["idempotency-key"];
  return key === undefined || (typeof key === "string" && isIdempotencyKey(key));
};
