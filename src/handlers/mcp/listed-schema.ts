/** The keywords with schemas by name, and those with a schema or a list of schemas. */
const MAPS = new Set(["properties", "patternProperties", "$defs", "definitions", "dependentSchemas", "dependencies"]);
const PARTS = new Set(
  "items contains not if then else propertyNames contentSchema allOf anyOf oneOf prefixItems additionalProperties additionalItems unevaluatedProperties unevaluatedItems".split(
    " ",
  ),
);
/** Keywords whose schema is usually `false`, which all clients read. */
const FLAGS = new Set(["additionalProperties", "additionalItems", "unevaluatedProperties", "unevaluatedItems"]);

/**
 * The schema of a skill as it is listed. It allows the same values. Clients of earlier revisions cannot read `true` and `false` in the place of a schema.
 * `x-mcp-header` is left out: its header would have to be compared with the argument.
 */
export function listedSchema(schema: unknown): unknown {
  if (schema === true) return {};
  if (schema === false) return { not: {} };
  if (Array.isArray(schema)) return schema.map(listedSchema);
  if (typeof schema !== "object" || schema === null) return schema;
  const listed = Object.entries(schema).filter(([keyword]) => keyword !== HEADER);
  return Object.fromEntries(listed.map(([keyword, value]) => [keyword, listedValue(keyword, value)]));
}
const HEADER = "x-mcp-header";

function listedValue(keyword: string, value: unknown): unknown {
  if (typeof value === "boolean" && FLAGS.has(keyword)) return value;
  if (PARTS.has(keyword)) return listedSchema(value);
  if (!MAPS.has(keyword)) return value;
  return Object.fromEntries(Object.entries(Object(value)).map(([name, inner]) => [name, listedSchema(inner)]));
}
