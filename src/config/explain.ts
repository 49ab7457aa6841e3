import { nearest } from "#core/nearest.ts";
import { pathOf, type SchemaError } from "./conform.ts";
import { dotted, type Fault } from "./problems.ts";
import { aboutKey, formOf, keysOf, nameRule } from "./schema.ts";

/** Says in words what the validator found. A value is never repeated: it may be a secret. */
export function explain(errors: readonly SchemaError[], value: unknown): Fault[] {
  const faults = ofChoices(errors).flatMap((error) => toFault(error, value) ?? []);
  return faults.filter(
    (fault, index) =>
      index === faults.findIndex((f) => f.message === fault.message && dotted(f.path) === dotted(fault.path)),
  );
}

function toFault(error: SchemaError, value: unknown): Fault | undefined {
  const path = pathOf(error.instancePath, value);
  const { params } = error;
  const here = (message: string): Fault => ({ path, on: "value", message });
  switch (error.keyword) {
    case "additionalProperties":
      return unknownKey(path, String(params.additionalProperty));
    case "required": {
      const missing = [...path, String(params.missingProperty)];
      return { path: missing, on: "key", message: `is missing. ${aboutKey(missing)}`.trimEnd() };
    }
    case "propertyNames": {
      const name = [...path, String(params.propertyName)];
      return { path: name, on: "key", message: `has a name that cannot be. ${nameRule(path)}`.trimEnd() };
    }
    case "type":
      return here(`must be ${kinds([params.type])}. ${formOf(path)}`.trimEnd());
    case "oneOf":
      return here(`must be ${kinds((params.kinds as unknown[] | undefined) ?? [])}. ${formOf(path)}`.trimEnd());
    case "enum":
      return here(`must be ${oneOf((params.allowedValues as unknown[]).map(String))}.`);
    case "discriminator":
      return {
        path: [...path, String(params.tag)],
        on: "value",
        message: `must be ${oneOf(keysOf(path, String(params.tag)))}.`,
      };
    case "minimum":
      return here(`must be at least ${params.limit}.`);
    case "maximum":
      return here(`must be at most ${params.limit}.`);
    case "minLength":
    case "minItems":
    case "minProperties":
      return here(Number(params.limit) > 1 ? `must hold at least ${params.limit}.` : "must not be empty.");
    case "maxLength":
    case "maxItems":
      return here(`must hold at most ${params.limit}.`);
    case "uniqueItems":
      return here("holds the same entry twice.");
    case "pattern":
      return here(`has the wrong form. ${formOf(path)}`.trimEnd());
    default:
      return here(`${error.message ?? "is not valid"}.`);
  }
}

function unknownKey(parent: Fault["path"], key: string): Fault {
  const known = keysOf(parent);
  const of = parent.length === 0 ? "the configuration" : dotted(parent);
  const fault = (message: string): Fault => ({ path: [...parent, key], on: "key", message });
  if (known.includes(key)) return fault(`does not go with the other keys of ${of}: remove it.`);
  const meant = nearest(key, known);
  return fault(`is no key of ${of}; ${meant ? `did you mean \`${meant}\`?` : `it has ${known.join(", ")}.`}`);
}

/**
 * Where a value may be one of several kinds, the validator tells why it is none of each. Said is what is wrong with the
 * kind that was meant; only if that cannot be seen, which kinds there are.
 */
function ofChoices(errors: readonly SchemaError[]): SchemaError[] {
  const isKind = ({ keyword }: SchemaError) => keyword === "type" || keyword === "const";
  const named = errors.filter(({ propertyName }) => propertyName === undefined);
  const choices = new Set(named.filter(({ keyword }) => keyword === "oneOf").map(({ instancePath }) => instancePath));
  return named.flatMap((error) => {
    if (!choices.has(error.instancePath) || !(isKind(error) || error.keyword === "oneOf")) return [error];
    if (error.keyword !== "oneOf") return [];
    const at = named.filter(({ instancePath }) => instancePath === error.instancePath);
    const inside = named.some(({ instancePath }) => instancePath.startsWith(`${error.instancePath}/`));
    if (inside || at.some((other) => !isKind(other) && other.keyword !== "oneOf")) return [];
    const found = at.filter(isKind).map(({ params }) => params.allowedValue ?? params.type);
    return [{ ...error, params: { kinds: found.map((kind) => (kind === "*" ? '"*"' : kind)) } }];
  });
}

const words: Record<string, string> = {
  string: "text",
  array: "a list",
  object: "an object",
  integer: "a whole number",
  number: "a number",
  boolean: "true or false",
};

const kinds = (found: readonly unknown[]): string =>
  join([...new Set(found.map((kind) => words[String(kind)] ?? String(kind)))]);

const oneOf = (names: readonly string[]): string => join(names.map((name) => `\`${name}\``));

const join = (names: readonly string[]): string =>
  names.length < 2 ? names.join("") : `${names.slice(0, -1).join(", ")} or ${names.at(-1)}`;
