import type { ValidationError } from "#generated/validators/validate.ts";
import { GatewayError } from "#kit/errors.ts";
import { ended, type ToldFault, faultOf as toldFault } from "#kit/fault-words.ts";

export type { ToldFault as BodyFault };

/** The fault that a generated validator found in a body, in our words. */
export const faultOf = (fault: ValidationError | undefined, body?: unknown): ToldFault =>
  toldFault(fault, fault?.params.known as string[] | undefined, body);

/** The refusal of a body for one fault. */
export const invalidBody = ({ pointer, message }: ToldFault): GatewayError => {
  const name = pointer === "" ? "The body" : pointer.slice(1).replaceAll("/", ".");
  return new GatewayError("invalid-request", ended(`${name} ${message}`), { errors: [{ pointer, message }] });
};
