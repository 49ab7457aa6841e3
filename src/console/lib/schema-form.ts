type Schema = Readonly<Record<string, unknown>>;

/** One field of a form that is made from a JSON Schema. */
export type SchemaField = {
  name: string;
  word: string;
  description: string | undefined;
  isRequired: boolean;
  /** `json` is for what no other kind fits: it is typed as JSON. */
  kind: "text" | "long" | "number" | "integer" | "choice" | "json";
  /** For a choice: what may be chosen, as JSON. */
  options: readonly string[];
  /** The field's first value. */
  initial: string;
  placeholder: string;
  /** The schema's demands on the value, in words. */
  limits: string;
};

/** From this length on a text has a field of several lines. */
const LONG = 200;

export function isObject(value: unknown): value is Schema {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
function textOf(value: unknown): string | undefined {
  return typeof value === "string" ? value : undefined;
}

/** The schema's type, if it has one besides null. */
function typeOf({ type }: Schema): string | undefined {
  const types = Array.isArray(type) ? type.filter((one) => one !== "null") : [type];
  return types.length === 1 ? textOf(types[0]) : undefined;
}

function choicesOf(schema: Schema): readonly unknown[] | undefined {
  if (Object.hasOwn(schema, "const")) return [schema.const];
  if (Array.isArray(schema.enum)) return schema.enum as unknown[];
  return typeOf(schema) === "boolean" ? [true, false] : undefined;
}

function kindOf(schema: Schema): SchemaField["kind"] {
  const type = typeOf(schema);
  if (choicesOf(schema) !== undefined) return "choice";
  if (type === "number" || type === "integer") return type;
  if (type !== "string") return "json";
  return typeof schema.maxLength === "number" && schema.maxLength > LONG ? "long" : "text";
}

const LIMITS = [
  ["minLength", "at least", " characters"],
  ["maxLength", "at most", " characters"],
  ["minimum", "at least", ""],
  ["maximum", "at most", ""],
  ["minItems", "at least", " items"],
  ["maxItems", "at most", " items"],
] as const;

function limitsOf(schema: Schema): string {
  return LIMITS.flatMap(([name, words, unit]) =>
    typeof schema[name] === "number" ? [`${words} ${schema[name]}${unit}`] : [],
  ).join(", ");
}

/** A value as its field shows it. */
function shown(kind: SchemaField["kind"], value: unknown): string {
  if (value === undefined) return "";
  if ((kind === "text" || kind === "long") && typeof value === "string") return value;
  return kind === "json" ? JSON.stringify(value, null, 2) : JSON.stringify(value);
}

/** The field of one value. */
export function fieldOf(name: string, schema: Schema, isRequired: boolean): SchemaField {
  const kind = kindOf(schema);
  const options = (choicesOf(schema) ?? []).map((one) => JSON.stringify(one));
  const only = isRequired && options.length === 1 ? options[0] : undefined;
  const [example] = Array.isArray(schema.examples) ? (schema.examples as unknown[]) : [];
  return {
    name,
    kind,
    options,
    isRequired,
    limits: limitsOf(schema),
    word: textOf(schema.title) ?? name,
    description: textOf(schema.description),
    initial: only ?? shown(kind, schema.default),
    placeholder: shown(kind, example),
  };
}

/** The fields of a schema of an object, those that are required first. */
export function fieldsOf(schema: Schema): SchemaField[] {
  const properties = isObject(schema.properties) ? schema.properties : {};
  const required = new Set(Array.isArray(schema.required) ? (schema.required as unknown[]) : []);
  return Object.entries(properties)
    .map(([name, given]) => fieldOf(name, isObject(given) ? given : {}, required.has(name)))
    .sort((one, other) => Number(other.isRequired) - Number(one.isRequired));
}

/** Says if a schema lets in fields that it does not name. */
export function acceptsMore(schema: Schema): boolean {
  return schema.additionalProperties !== false;
}

type FormValues = Readonly<Record<string, string>>;

/** The typed values as params, or their faults by the field's name. An optional field that is empty is left out. */
export function paramsOf(
  fields: readonly SchemaField[],
  values: FormValues,
): { params: Record<string, unknown> } | { faults: Record<string, string> } {
  const params: Record<string, unknown> = {};
  const faults: Record<string, string> = {};
  for (const field of fields) {
    const typed = values[field.name] ?? field.initial;
    const read = typedValue(field, typed);
    if (read === undefined) continue;
    if ("fault" in read) faults[field.name] = read.fault;
    // A name as `__proto__` is a name like any other.
    else Object.defineProperty(params, field.name, { value: read.value, enumerable: true });
  }
  return Object.keys(faults).length > 0 ? { faults } : { params };
}

function typedValue(
  { kind, isRequired }: SchemaField,
  typed: string,
): { value: unknown } | { fault: string } | undefined {
  const isText = kind === "text" || kind === "long";
  if (isText ? typed === "" : typed.trim() === "") return isRequired ? { fault: "Required." } : undefined;
  if (isText) return { value: typed };
  if (kind === "number" || kind === "integer") {
    const value = Number(typed);
    if (!Number.isFinite(value)) return { fault: "Must be a number." };
    return kind === "integer" && !Number.isInteger(value) ? { fault: "Must be a whole number." } : { value };
  }
  try {
    return { value: JSON.parse(typed) as unknown };
  } catch {
    return { fault: "Invalid JSON." };
  }
}
