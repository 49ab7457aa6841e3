import fc from "fast-check";

export type Schema = {
  $ref?: string;
  type?: string | string[];
  const?: unknown;
  enum?: unknown[];
  oneOf?: Schema[];
  anyOf?: Schema[];
  allOf?: Schema[];
  properties?: Record<string, Schema>;
  required?: string[];
  additionalProperties?: boolean | Schema;
  items?: Schema;
  minItems?: number;
  maxItems?: number;
  uniqueItems?: boolean;
  minLength?: number;
  maxLength?: number;
  pattern?: string;
  format?: string;
  minimum?: number;
  maximum?: number;
};
type Document = { components?: { schemas?: Record<string, Schema> } };

/** Texts and lists are at most this long, whatever a schema allows: limits have separate tests. */
const LONGEST = 40;
const MOST_ITEMS = 3;

export function resolve(document: Document, schema: Schema): Schema {
  if (schema.$ref === undefined) return schema;
  const target = schema.$ref
    .split("/")
    .slice(1)
    .reduce<unknown>((at, key) => (at as Record<string, unknown>)[key.replaceAll("~1", "/")], document) as Schema;
  return resolve(document, target);
}

/** Values that a schema allows. */
export function allowedBy(document: Document, given: Schema): fc.Arbitrary<unknown> {
  const schema = resolve(document, given);
  const inner = (one: Schema) => allowedBy(document, one);
  if (schema.const !== undefined) return fc.constant(schema.const);
  if (schema.enum) return fc.constantFrom(...schema.enum);
  const choices = schema.oneOf ?? schema.anyOf;
  if (choices && schema.properties === undefined) return fc.oneof(...choices.map(inner));
  const type = Array.isArray(schema.type) ? schema.type : [schema.type ?? (schema.properties ? "object" : "any")];
  return fc.oneof(...type.map((one) => ofType(document, schema, one)));
}

function ofType(document: Document, schema: Schema, type: string): fc.Arbitrary<unknown> {
  const { minimum = -1000, maximum = 1000 } = schema;
  if (type === "null") return fc.constant(null);
  if (type === "boolean") return fc.boolean();
  if (type === "integer") return fc.integer({ min: minimum, max: maximum });
  if (type === "number") return fc.double({ min: minimum, max: maximum, noNaN: true });
  if (type === "string") return textOf(schema);
  if (type === "array") {
    const { items = {}, minItems: minLength = 0, maxItems = MOST_ITEMS } = schema;
    const limits = { minLength, maxLength: Math.min(maxItems, Math.max(minLength, MOST_ITEMS)) };
    const item = allowedBy(document, items);
    return schema.uniqueItems ? fc.uniqueArray(item, { ...limits, comparator: "SameValue" }) : fc.array(item, limits);
  }
  return type === "object" ? objectOf(document, schema) : fc.jsonValue({ maxDepth: 2 });
}

const DAY_MS = 86_400_000;
function fromNow(days: number): Date {
  return new Date(Date.now() + days * DAY_MS);
}

function textOf({ pattern, format, minLength = 0, maxLength = LONGEST }: Schema): fc.Arbitrary<string> {
  // A pattern cannot define the valid days.
  if (format === "date-time" || pattern?.startsWith("^[0-9]{4}-[0-9]{2}-[0-9]{2}"))
    return fc.date({ min: fromNow(1), max: fromNow(3_000), noInvalidDate: true }).map((date) => date.toISOString());
  const isFitting = (text: string) => text.length >= minLength && text.length <= maxLength;
  if (pattern !== undefined) return fc.stringMatching(new RegExp(pattern, "u"), { size: "small" }).filter(isFitting);
  return fc.string({ minLength, maxLength: Math.min(maxLength, Math.max(LONGEST, minLength)), unit: "grapheme" });
}

function objectOf(document: Document, schema: Schema): fc.Arbitrary<object> {
  const { properties = {}, required = [], additionalProperties } = schema;
  const fields = Object.fromEntries(Object.entries(properties).map(([name, one]) => [name, allowedBy(document, one)]));
  const known = fc.record(fields, { requiredKeys: required.filter((name) => name in fields) });
  if (additionalProperties === false || Object.keys(properties).length > 0) return known;
  const others =
    typeof additionalProperties === "object"
      ? allowedBy(document, additionalProperties)
      : fc.jsonValue({ maxDepth: 1 });
  return fc.dictionary(fc.stringMatching(/^[a-z]{1,8}$/), others, { maxKeys: MOST_ITEMS });
}

/** A change to an allowed object that its schema refuses, with a name. */
type Mistake = readonly [name: string, make: (value: object) => object];

/** The mistakes that can be made in an object of a schema. An object that may have any field has none. */
export function mistakesIn(document: Document, given: Schema): Mistake[] {
  const { properties = {}, required = [], additionalProperties } = resolve(document, given);
  if (additionalProperties !== false) return [];
  return [
    ["an unknown field", (value) => ({ ...value, not_a_field_of_this: 1 })],
    ...required.map((name): Mistake => [`no ${name}`, (value) => without(value, name)]),
    ...Object.entries(properties).flatMap(([name, one]): Mistake[] => {
      const wrong = wrongFor(resolve(document, one));
      return wrong === undefined ? [] : [[`${name} of another type`, (value) => ({ ...value, [name]: wrong })]];
    }),
  ];
}

function without(value: object, name: string): object {
  return Object.fromEntries(Object.entries(value).filter(([key]) => key !== name));
}

/** A value of a type that the schema does not accept; undefined if it accepts most types. */
function wrongFor({ type, enum: choices, const: only, oneOf, anyOf }: Schema): unknown {
  if (choices || only !== undefined) return { not: "one of these" };
  if (oneOf || anyOf || type === undefined) return undefined;
  const types = [type].flat();
  if (!types.includes("object")) return { not: "of this type" };
  return types.includes("integer") || types.includes("number") ? undefined : 7;
}

/** The mistakes that can be made in a text form: a query, or headers. An unknown header is not a mistake. */
export function textMistakesIn(document: Document, { properties = {} }: Schema): Mistake[] {
  return Object.entries(properties).flatMap(([name, given]): Mistake[] => {
    const schema = resolve(document, given);
    const wrong = ["", "none of these", "x".repeat((schema.maxLength ?? 0) + 1)].find((text) => !isText(schema, text));
    return wrong === undefined
      ? []
      : [[`${name} that is ${JSON.stringify(wrong).slice(0, 30)}`, (value) => ({ ...value, [name]: wrong })]];
  });
}

/** Whether a text is a value of the schema. */
function isText(
  { type, enum: choices, pattern, minLength = 0, maxLength = Number.POSITIVE_INFINITY }: Schema,
  text: string,
): boolean {
  if (type === "integer") return /^-?\d+$/.test(text);
  if (choices) return choices.includes(text);
  const isLong = text.length >= minLength && text.length <= maxLength;
  return isLong && (pattern === undefined || new RegExp(pattern, "u").test(text));
}
