import type { ValidationError } from "#generated/validators/validate.ts";
import { GatewayError } from "#kit/errors.ts";
import { ended, type FaultText, foremost, faultOf as toldFault } from "#kit/fault-words.ts";

export type { FaultText as BodyFault };

/** The fault that a generated validator found in a body, in our words. */
export function faultOf(fault: ValidationError | undefined, body?: unknown): FaultText {
  return toldFault(fault, fault?.params.known as string[] | undefined, body);
}

/** The refusal of a request for its faults, of which the most important one is described in a sentence. */
export function invalidRequest(faults: readonly FaultText[], nameOf = nameOfPlace): GatewayError {
  const { pointer, message } = foremost(faults) as FaultText;
  return new GatewayError("invalid-request", ended(`${nameOf(pointer) || "The body"} ${message}`), { errors: faults });
}

/** A pointer as people write the place: `skill_ids.0`, `query:limit`. */
function nameOfPlace(pointer: string): string {
  return pointer.startsWith("/") ? pointer.slice(1).replaceAll("/", ".") : pointer;
}
