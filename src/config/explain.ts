import bundled from "#generated/config.schema.json" with { type: "json" };
import { demandOf } from "#kit/fault-words.ts";
import { nearest } from "#kit/nearest.ts";
import { dotted, type Fault, type Path, valueAt } from "./problems.ts";
import { meantReference } from "./references.ts";

type Schema = {
  $ref?: string;
  const?: unknown;
  enum?: unknown[];
  examples?: unknown[];
  patternErrorMessage?: string;
  maxLength?: number;
  minProperties?: number;
  properties?: Record<string, Schema>;
  additionalProperties?: Schema | boolean;
  propertyNames?: Schema;
  items?: Schema;
  oneOf?: Schema[];
  discriminator?: { propertyName: string };
};

const whole: Schema = bundled as Schema;

/** The used fields of a validator's error. */
type SchemaError = {
  instancePath: string;
  keyword: string;
  params: Record<string, unknown>;
  propertyName?: string;
  message?: string;
};

/**
 * Describes the validator's errors, with the text to write instead. Values are not repeated, because they may be secrets.
 * `written` is the configuration before its references were filled in.
 */
export function explain(errors: readonly SchemaError[], value: unknown, written: unknown): Fault[] {
  const among = new Set(errors.filter(({ keyword }) => keyword === "enum").map(({ instancePath }) => instancePath));
  const shown = ofChoices(errors).filter(({ keyword, instancePath }) => keyword !== "type" || !among.has(instancePath));
  const faults = shown.map((error) => faultOf(error, value, written));
  return [...new Map(faults.map((fault) => [`${dotted(fault.path)}\n${fault.message}`, fault])).values()];
}

function faultOf(error: SchemaError, root: unknown, written: unknown): Fault {
  const path = pathOf(error.instancePath, root);
  const value = valueAt(root, path);
  const schemas = schemasAt(path, root);
  const { keyword, params } = error;
  const here = (message: string): Fault => ({ path, on: "value", message });
  const form = schemas.find(({ patternErrorMessage }) => patternErrorMessage)?.patternErrorMessage;
  switch (keyword) {
    case "additionalProperties":
      return unknownKey(path, String(params.additionalProperty), root);
    case "required":
      return missing([...path, String(params.missingProperty)], root);
    case "propertyNames":
      return wrongName(path, String(params.propertyName), schemas);
    case "type":
    case "oneOf": {
      if (isBare(params.type) && typeof value === "string" && value !== valueAt(written, path)) {
        const instead = dotted(path) === "gateway.port" ? ", or leave it out and set GATEWAY_PORT" : "";
        return here(
          `must be ${WORDS[String(params.type)]}, and a reference gives text: write the value itself${instead}.`,
        );
      }
      const found = keyword === "type" ? [params.type] : ((params.kinds as unknown[] | undefined) ?? []);
      const hint = withoutQuotes(value, params.type) || example(schemas) || brackets(found);
      return here(`${form ?? `must be ${kindsOf(found)}${hint}`}.`);
    }
    case "enum":
      return here(`must be ${choice((params.allowedValues as unknown[]).map(String), value)}`);
    case "discriminator": {
      const tag = String(params.tag);
      const given = valueAt(root, [...path, tag]);
      const tags = schemas.flatMap(({ properties }) => properties?.[tag]?.const ?? []).map(String);
      return given === undefined
        ? { path: [...path, tag], on: "key", message: `is missing. It must be ${choice(tags, given)}` }
        : { path: [...path, tag], on: "value", message: `must be ${choice(tags, given)}` };
    }
    case "minLength":
    case "minItems":
    case "minProperties":
      return here(`must not be empty${holdsMany(schemas) ? ": add at least one" : ""}${example(schemas)}.`);
    case "maxProperties":
      return here(`must have at most ${params.limit} keys.`);
    case "minimum":
    case "maximum":
    case "maxLength":
    case "maxItems":
      return here(`must ${demandOf(error)}.`);
    case "uniqueItems":
      return here("has the same entry twice: remove one of them.");
    case "pattern": {
      const meant = meantReference(value);
      const hint = meant === undefined ? "" : ` To take it from a variable, write \`${meant}\`.`;
      return here(`${form ?? "must be of another form"}.${hint}`);
    }
    default:
      return here(`${error.message ?? "is not valid"}.`);
  }
}

function missing(path: Path, root: unknown): Fault {
  const schemas = schemasAt(path, root);
  const shown = exampleOf(schemas);
  const advice = holdsMany(schemas) ? "Add at least one" : "Add it";
  const message = `is missing. ${advice}${shown === undefined ? "" : `, for example \`${path.at(-1)}: ${shown}\``}.`;
  return { path, on: "key", message };
}

function unknownKey(parent: Path, key: string, root: unknown): Fault {
  const fault = (message: string): Fault => ({ path: [...parent, key], on: "key", message });
  // In an object of several kinds, another kind may have the key.
  const other = schemasAt(parent).find(({ properties }) => properties?.[key] && kindOf(properties) !== undefined);
  if (other) {
    const own = schemasAt(parent, root).find(({ properties }) => kindOf(properties) !== undefined);
    const [right, wrong] = [kindOf(other.properties), kindOf(own?.properties)];
    return fault(`is for \`type: "${right}"\`, not for \`type: "${wrong}"\`: remove it, or change the type.`);
  }
  const known = keysOf(schemasAt(parent, root));
  const meant = nearest(key, known) ?? (parent.length === 0 ? keyElsewhere(key) : undefined);
  const name = parent.length === 0 ? "the configuration" : dotted(parent);
  return fault(`is not a key of ${name}; ${meant ? `did you mean \`${meant}\`?` : `it has ${known.join(", ")}.`}`);
}

function kindOf(properties: Schema["properties"]): unknown {
  return properties?.type?.const;
}

/** The full path of a key at the top level: `gateway.port` for `port`. */
function keyElsewhere(key: string): string | undefined {
  const section = keysOf(schemasAt([])).find((name) => keysOf(schemasAt([name])).includes(key));
  return section && `${section}.${key}`;
}

function wrongName(path: Path, name: string, schemas: readonly Schema[]): Fault {
  const rules = schemas.flatMap(({ propertyNames }) => (propertyNames ? views(propertyNames) : []));
  const { patternErrorMessage, maxLength } = rules.find((rule) => rule.patternErrorMessage ?? rule.maxLength) ?? {};
  const form = patternErrorMessage ?? `must be a name of 1 to ${maxLength} characters`;
  const first = nearest(name.split(".")[0] ?? "", ["headers", "body"]);
  const isPlace =
    form.includes("`headers.<name>`") && name.includes(".") && first !== undefined && !name.startsWith(`${first}.`);
  const meant = isPlace ? ` Did you mean \`${[first, ...name.split(".").slice(1)].join(".")}\`?` : "";
  return { path: [...path, name], on: "key", message: `${form}.${meant}` };
}

/**
 * If a value may be of several kinds, the validator reports an error for each kind. Keeps the errors of the intended kind;
 * if that is unclear, an error that lists the kinds.
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
    return [{ ...error, params: { kinds: found.map((kind) => (kind === "*" ? '`"*"`' : kind)) } }];
  });
}

const WORDS: Record<string, string> = {
  string: "text",
  array: "a list",
  object: "an object",
  integer: "a whole number",
  number: "a number",
  boolean: "`true` or `false`",
};

function kindsOf(found: readonly unknown[]): string {
  return joined([...new Set(found.flatMap((kind) => (WORDS[String(kind)] ?? String(kind)).split(" or ")))]);
}

/** The choices, and the one that was probably meant, with a full stop. */
function choice(names: readonly string[], written: unknown): string {
  const meant = typeof written === "string" ? nearest(written, names) : undefined;
  const all = joined(names.map((name) => `\`${name}\``));
  return meant === undefined ? `${all}.` : `${all}; did you mean \`${meant}\`?`;
}

function example(schemas: readonly Schema[]): string {
  const shown = exampleOf(schemas);
  return shown === undefined ? "" : `, for example \`${shown}\``;
}

/** The notation of a list or an object, if only that is allowed. */
function brackets(found: readonly unknown[]): string {
  if (found.length > 1) return "";
  return found[0] === "array" ? ", in brackets: `[…]`" : found[0] === "object" ? ", in braces: `{…}`" : "";
}

/** The hint for a number or a boolean that was written as text. */
function withoutQuotes(value: unknown, type: unknown): string {
  if (typeof value !== "string") return "";
  const bare = type === "boolean" ? /^(true|false)$/ : /^\d+(\.\d+)?$/;
  return isBare(type) && bare.test(value.trim()) ? ", without quotes" : "";
}

/** True for types that are written without quotes. */
function isBare(type: unknown): boolean {
  return ["integer", "number", "boolean"].includes(String(type));
}

function joined(names: readonly string[]): string {
  return names.length < 2 ? names.join("") : `${names.slice(0, -1).join(", ")} or ${names.at(-1)}`;
}

/** The path of a JSON Pointer; steps into a list are numbers. */
function pathOf(pointer: string, root: unknown): Path {
  const path: (string | number)[] = [];
  for (const word of pointer.split("/").slice(1)) {
    const key = word.replaceAll("~1", "/").replaceAll("~0", "~");
    path.push(Array.isArray(valueAt(root, path)) ? Number(key) : key);
  }
  return path;
}

/** An example value for a place, from the nearest schema that has one. */
function exampleOf(schemas: readonly Schema[]): string | undefined {
  const [shown] = schemas.find(({ examples }) => examples)?.examples ?? schemas.find((one) => one.enum)?.enum ?? [];
  return shown === undefined ? undefined : json5(shown);
}

/** True if a place is an object that needs at least one freely chosen key. */
function holdsMany(schemas: readonly Schema[]): boolean {
  return schemas.some(({ minProperties = 0 }) => minProperties > 0);
}

/** The keys that an object may have. */
function keysOf(schemas: readonly Schema[]): string[] {
  return [...new Set(schemas.flatMap(({ properties }) => Object.keys(properties ?? {})))];
}

/** The schemas of a place, nearest first. In an object of several kinds, only that of the kind in `root`, or all without it. */
function schemasAt(path: Path, root?: unknown): Schema[] {
  let here = views(whole, root);
  for (const [depth, step] of path.entries()) {
    const value = valueAt(root, path.slice(0, depth + 1));
    here = here.flatMap(({ items, properties = {}, additionalProperties }) => {
      if (typeof step === "number") return items ? views(items, value) : [];
      if (Object.hasOwn(properties, step)) return views(properties[step] as Schema, value);
      return typeof additionalProperties === "object" ? views(additionalProperties, value) : [];
    });
  }
  return here;
}

/** A schema as it is, then what it refers to, then its choices. */
function views(schema: Schema, value?: unknown): Schema[] {
  const { $ref, discriminator, oneOf = [] } = schema;
  const tag = discriminator?.propertyName ?? "";
  const kind = valueAt(value, [tag]);
  const meant = kind === undefined ? [] : oneOf.filter(({ properties }) => properties?.[tag]?.const === kind);
  const referred = $ref === undefined ? [] : views(valueAt(whole, $ref.split("/").slice(1)) as Schema, value);
  return [schema, ...referred, ...(meant.length > 0 ? meant : oneOf).flatMap((one) => views(one, value))];
}

/** A value as JSON5, on one line. */
function json5(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(json5).join(", ")}]`;
  if (typeof value !== "object" || value === null) return JSON.stringify(value);
  const pairs = Object.entries(value).map(
    ([key, item]) => `${/^[A-Za-z_$][\w$]*$/.test(key) ? key : JSON.stringify(key)}: ${json5(item)}`,
  );
  return pairs.length === 0 ? "{}" : `{ ${pairs.join(", ")} }`;
}
