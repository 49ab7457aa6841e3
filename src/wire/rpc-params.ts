import type { Validate, ValidationError } from "#generated/validators/validate.ts";
import { shortened } from "./rpc-envelope.ts";

/** What the last call of the validator found wrong with the params, as a sentence. */
export const paramFault = (method: string, { errors }: Validate): string => {
  const [fault] = errors ?? [];
  if (fault === undefined) return "The params are not what the method takes.";
  const place = fault.instancePath.slice(1).replaceAll("/", ".");
  if (fault.keyword === "additionalProperties") return unknownParam(method, place, fault);
  const subject = place === "" ? "The params object" : `\`${shortened(place)}\``;
  return `${subject} must ${demandOf(fault)}.`;
};

const unknownParam = (method: string, place: string, { params }: ValidationError): string => {
  const name = String(params.additionalProperty);
  const path = shortened(place === "" ? name : `${place}.${name}`);
  return `\`${path}\` is no param of ${method}.`;
};

const demandOf = ({ keyword, params, message }: ValidationError): string => {
  const { type, allowedValues, limit } = params as { type?: unknown; allowedValues?: unknown[]; limit?: number };
  if (keyword === "type") return `be ${[type].flat().map(withArticle).join(" or ")}`;
  if (keyword === "enum") return `be one of ${allowedValues?.join(", ")}`;
  if (keyword === "minimum") return `be at least ${limit}`;
  if (keyword === "maximum") return `be at most ${limit}`;
  if (keyword === "minLength") return `have at least ${counted(limit, "character")}`;
  if (keyword === "maxLength") return `have at most ${counted(limit, "character")}`;
  if (keyword === "pattern") return "have the form that rpc.discover shows";
  return message?.replace(/^must /, "") ?? "be what rpc.discover shows";
};

const withArticle = (type: unknown): string =>
  type === "null" ? "null" : `${/^[aeiou]/.test(String(type)) ? "an" : "a"} ${type}`;

const counted = (count: number | undefined, noun: string): string => `${count} ${noun}${count === 1 ? "" : "s"}`;
