/** The keyword by which a tool's schema asks for an argument as a header, too. */
export const HEADER_KEYWORD = "x-mcp-header";

const TOKEN = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/;
const TYPES: readonly unknown[] = ["string", "integer", "boolean"];
/** The keywords whose schemas do not describe exactly one argument. A header is not allowed in them. */
const SCHEMAS = [
  "items",
  "prefixItems",
  "contains",
  "additionalProperties",
  "unevaluatedProperties",
  "unevaluatedItems",
  "propertyNames",
  "oneOf",
  "anyOf",
  "allOf",
  "not",
  "if",
  "then",
  "else",
];
/** The keywords with named schemas of that kind. */
const NAMED_SCHEMAS = ["patternProperties", "dependentSchemas", "$defs", "definitions"];

/**
 * True if a schema asks for headers in a way that MCP 2026-07-28 forbids: with a name that no header has, twice, or for something that
 * is not one text, integer or boolean. Clients must not offer such a tool.
 */
export function hasWrongHeader(inputSchema: unknown): boolean {
  const names = new Set<string>();
  const isWrongName = ({ [HEADER_KEYWORD]: name, type }: Schema): boolean => {
    if (typeof name !== "string" || !TOKEN.test(name) || !TYPES.includes(type)) return true;
    const before = names.size;
    return names.add(name.toLowerCase()).size === before;
  };
  const isWrong = (schema: unknown, isArgument: boolean, isProperty: boolean): boolean => {
    if (!isSchema(schema)) return false;
    if (HEADER_KEYWORD in schema && (!isProperty || isWrongName(schema))) return true;
    if (valuesOf(schema.properties).some((one) => isWrong(one, isArgument, isArgument))) return true;
    const others = [
      ...SCHEMAS.flatMap((keyword) => schema[keyword] ?? []),
      ...NAMED_SCHEMAS.flatMap((keyword) => valuesOf(schema[keyword])),
    ];
    return others.some((one) => isWrong(one, false, false));
  };
  return isWrong(inputSchema, true, false);
}

type Schema = Record<string, unknown>;

function isSchema(value: unknown): value is Schema {
  return typeof value === "object" && value !== null;
}

function valuesOf(schemas: unknown): unknown[] {
  return isSchema(schemas) ? Object.values(schemas) : [];
}
