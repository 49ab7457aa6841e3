import type { IncomingMessage } from "node:http";
import { bodies } from "#generated/validators/rest-bodies.js";
import { isIdempotencyKey } from "#wire/call/idempotency-key.ts";
import type { HoldToContract } from "./rest.ts";
import type { ValidateRequest } from "./rest-validation.ts";

/**
 * Holds the bodies of operations that are called all the time to validators that were compiled ahead, as to go through Express costs a short
 * turn more than all the rest. What these do not take, or do not look at, `validate` judges: no refusal is theirs.
 */
export const holdHot =
  (validate: ValidateRequest): HoldToContract =>
  (req, res, body, route) => {
    const isTaken = bodies[route.operation as keyof typeof bodies];
    return isTaken && isPlain(req) && isTaken(body) ? { body, query: NO_QUERY } : validate(req, res, body, route);
  };

const NO_QUERY = {};

/** Nothing is said beside the body but, perhaps, a key that is one. */
const isPlain = ({ url = "", headers }: IncomingMessage): boolean => {
  if (url.includes("?")) return false;
  const key = headers["idempotency-key"];
  return key === undefined || (typeof key === "string" && isIdempotencyKey(key));
};
