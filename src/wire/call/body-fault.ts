import type { ValidationError } from "#generated/validators/validate.ts";
import { GatewayError } from "#kit/errors.ts";
import { demandOf, ended, foremost, hintOf, insteadOf } from "#kit/fault-words.ts";

/** A fault in a body: its place, and a message. */
export type BodyFault = { pointer: string; message: string };

/** The number of characters of an unknown field's name that are repeated: a stranger chooses these names. */
const NAME_LIMIT = 100;

/** The fault that a generated validator found in a body, in our words. */
export const faultOf = (fault: ValidationError | undefined, body?: unknown): BodyFault => {
  if (fault === undefined) return { pointer: "", message: "is not what the contract says" };
  const { keyword, instancePath: pointer, params, message = "is not what the contract says" } = fault;
  if (keyword === "required") {
    const missing = String(params.missingProperty);
    const instead = pointer === "" ? insteadOf(missing, Object(body)) : "";
    return { pointer: below(pointer, missing), message: instead === "" ? "is required" : `is required.${instead}` };
  }
  if (keyword === "additionalProperties") {
    const name = String(params.additionalProperty);
    return { pointer: below(pointer, name), message: `is unknown${hintOf(name, (params.known as string[]) ?? [])}` };
  }
  const demand = demandOf(fault);
  return { pointer, message: demand === undefined ? message : `must ${demand}` };
};

const below = (place: string, name: unknown): string =>
  `${place}/${String(name).slice(0, NAME_LIMIT).replaceAll("~", "~0").replaceAll("/", "~1")}`;

/** The refusal of a request for its faults, of which the foremost is told in a sentence. */
export const invalidRequest = (faults: readonly BodyFault[], nameOf = nameOfPlace): GatewayError => {
  const { pointer, message } = foremost(faults) as BodyFault;
  return new GatewayError("invalid-request", ended(`${nameOf(pointer) || "The body"} ${message}`), { errors: faults });
};

/** A pointer as people write the place: `skill_ids.0`, `query:limit`. */
const nameOfPlace = (pointer: string): string =>
  pointer.startsWith("/") ? pointer.slice(1).replaceAll("/", ".") : pointer;
