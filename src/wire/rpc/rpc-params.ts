import type { Validate, ValidationError } from "#generated/validators/validate.ts";
import { demandOf, hintOf } from "#kit/fault-words.ts";
import { shortened } from "./envelope.ts";

/** The fault that the last call of the validator found in the params, as a sentence. */
export const paramFault = (method: string, { errors }: Validate): string => {
  const [fault] = errors ?? [];
  if (fault === undefined) return "The params are not what the method takes.";
  const place = fault.instancePath.slice(1).replaceAll("/", ".");
  if (fault.keyword === "additionalProperties") return unknownParam(method, place, fault);
  const subject = place === "" ? "The params object" : `\`${shortened(place)}\``;
  return `${subject} must ${demandOfParam(fault)}.`;
};

const unknownParam = (method: string, place: string, { params }: ValidationError): string => {
  const name = String(params.additionalProperty);
  const path = shortened(place === "" ? name : `${place}.${name}`);
  return `\`${path}\` is no param of ${method}${hintOf(name, (params.known as string[]) ?? [])}.`;
};

const demandOfParam = (fault: ValidationError): string =>
  demandOf(fault) ?? fault.message?.replace(/^must /, "") ?? "be what rpc.discover shows";
