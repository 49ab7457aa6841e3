import { GatewayError } from "#core/errors.ts";
import type { HooksOperation } from "#generated/hooks-handlers.ts";
import { bodies } from "#generated/validators/hooks.js";
import type { Validate, ValidationError } from "#generated/validators/validate.ts";
import { parseJson } from "./body.ts";

/** The body of an operation, held to the contract, with its defaults filled in. */
export const readHookBody = (operation: HooksOperation, raw: Buffer): unknown => {
  const body = parseJson(raw);
  const validate = bodies[operation];
  if (!validate(body)) throw faultOf(validate);
  return body;
};

/** A stranger chooses the names of unknown fields: only so much of one is repeated. */
const NAME_LIMIT = 100;

const faultOf = ({ errors }: Validate): GatewayError => {
  const [pointer, message] = wordsOf(errors?.[0]);
  const name = pointer === "" ? "The body" : pointer.slice(1).replaceAll("/", ".");
  return new GatewayError("invalid-request", `${name} ${message}.`, { errors: [{ pointer, message }] });
};

const wordsOf = (fault: ValidationError | undefined): [pointer: string, message: string] => {
  if (fault === undefined) return ["", "is not what the contract says"];
  const { keyword, instancePath, params, message = "is not what the contract says" } = fault;
  if (keyword === "required") return [below(instancePath, params.missingProperty), "is required"];
  if (keyword === "additionalProperties") return [below(instancePath, params.additionalProperty), "is unknown"];
  if (keyword === "enum") return [instancePath, `must be one of ${[params.allowedValues].flat().join(", ")}`];
  if (keyword === "type") return [instancePath, `must be ${[params.type].flat().map(withArticle).join(" or ")}`];
  if (keyword === "minLength") return [instancePath, `must have at least ${params.limit} character`];
  if (keyword === "maxLength") return [instancePath, `must have at most ${params.limit} characters`];
  // Only sessions have a form.
  if (keyword === "pattern") return [instancePath, "must have the form webhook:<name>, of printable characters"];
  return [instancePath, message];
};

const withArticle = (type: unknown): string =>
  type === "array" ? "a list" : `${type === "object" ? "an" : "a"} ${type}`;

const below = (place: string, name: unknown): string =>
  `${place}/${String(name).slice(0, NAME_LIMIT).replaceAll("~", "~0").replaceAll("/", "~1")}`;
