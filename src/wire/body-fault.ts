import { GatewayError } from "#core/errors.ts";
import type { ValidationError } from "#generated/validators/validate.ts";

/** Where in a body something is wrong, and what. */
export type BodyFault = { pointer: string; message: string };

/** A stranger chooses the names of unknown fields: only so much of one is repeated. */
const NAME_LIMIT = 100;

/** What a generated validator found, in our words. */
export const faultOf = (fault: ValidationError | undefined): BodyFault => {
  if (fault === undefined) return { pointer: "", message: "is not what the contract says" };
  const { keyword, instancePath: pointer, params, message = "is not what the contract says" } = fault;
  if (keyword === "required") return { pointer: below(pointer, params.missingProperty), message: "is required" };
  if (keyword === "additionalProperties")
    return { pointer: below(pointer, params.additionalProperty), message: "is unknown" };
  return { pointer, message: wordsOf(keyword, params) ?? message };
};

const wordsOf = (keyword: string, { type, allowedValues, limit }: ValidationError["params"]): string | undefined => {
  if (keyword === "enum") return `must be one of ${[allowedValues].flat().join(", ")}`;
  if (keyword === "type") return `must be ${[type].flat().map(withArticle).join(" or ")}`;
  if (keyword === "minLength") return `must have at least ${limit} character`;
  if (keyword === "maxLength") return `must have at most ${limit} characters`;
  return undefined;
};

const withArticle = (type: unknown): string => {
  if (type === "null") return "null";
  return type === "array" ? "a list" : `${/^[aeiou]/.test(String(type)) ? "an" : "a"} ${type}`;
};

const below = (place: string, name: unknown): string =>
  `${place}/${String(name).slice(0, NAME_LIMIT).replaceAll("~", "~0").replaceAll("/", "~1")}`;

/** The refusal of a body for one fault. */
export const invalidBody = ({ pointer, message }: BodyFault): GatewayError => {
  const name = pointer === "" ? "The body" : pointer.slice(1).replaceAll("/", ".");
  return new GatewayError("invalid-request", `${name} ${message}.`, { errors: [{ pointer, message }] });
};
