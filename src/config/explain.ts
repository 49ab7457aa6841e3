import { nearest } from "#kit/nearest.ts";
import { dotted, type Fault, type Path, valueAt } from "./problems.ts";
import { meantReference } from "./references.ts";
import {
  exampleOf,
  holdsMany,
  keyElsewhere,
  keysOf,
  kindOf,
  kindsWith,
  nameRules,
  patternsOf,
  tagsOf,
} from "./schema.ts";

/** One fault that a validator found, as far as it is used here. */
type SchemaError = {
  instancePath: string;
  keyword: string;
  params: Record<string, unknown>;
  propertyName?: string;
  message?: string;
};

/**
 * Says in words what the validator found, and what to write instead. A value is never repeated: it may be a secret.
 * `written` is the configuration before its references were filled in.
 */
export function explain(errors: readonly SchemaError[], value: unknown, written: unknown): Fault[] {
  const among = new Set(errors.filter(({ keyword }) => keyword === "enum").map(({ instancePath }) => instancePath));
  const told = ofChoices(errors).filter(({ keyword, instancePath }) => keyword !== "type" || !among.has(instancePath));
  const faults = told.flatMap((error) => toFault(error, value, written) ?? []);
  return faults.filter(
    (fault, index) =>
      index === faults.findIndex((f) => f.message === fault.message && dotted(f.path) === dotted(fault.path)),
  );
}

function toFault(error: SchemaError, root: unknown, written: unknown): Fault | undefined {
  const path = pathOf(error.instancePath, root);
  const value = valueAt(root, path);
  const { params } = error;
  const here = (message: string): Fault => ({ path, on: "value", message });
  const form = patternsOf(path, root).map(formOfPattern).find(Boolean);
  switch (error.keyword) {
    case "additionalProperties":
      return unknownKey(path, String(params.additionalProperty), root);
    case "required":
      return missing([...path, String(params.missingProperty)], root);
    case "propertyNames":
      return wrongName(path, String(params.propertyName), root);
    case "type":
    case "oneOf": {
      const bare = bareKind(params.type);
      if (bare !== undefined && typeof value === "string" && value !== valueAt(written, path)) {
        const instead = dotted(path) === "gateway.port" ? ", or leave it out and set GATEWAY_PORT" : "";
        return here(`must be ${words[bare]}, and a reference gives text: write the value itself${instead}.`);
      }
      const found = error.keyword === "type" ? [params.type] : ((params.kinds as unknown[] | undefined) ?? []);
      const kind = `${kinds(found)}${withoutQuotes(value, params.type) || example(path, root) || brackets(found)}`;
      return here(`must be ${form ?? kind}.`);
    }
    case "enum":
      return here(`must be ${choice((params.allowedValues as unknown[]).map(String), value)}`);
    case "discriminator": {
      const tag = [...path, String(params.tag)];
      const written = valueAt(root, tag);
      const choices = choice(tagsOf(path, String(params.tag)), written);
      return written === undefined
        ? { path: tag, on: "key", message: `is missing. It must be ${choices}` }
        : { path: tag, on: "value", message: `must be ${choices}` };
    }
    case "minimum":
      return here(`must be at least ${params.limit}.`);
    case "maximum":
      return here(`must be at most ${params.limit}.`);
    case "minLength":
    case "minItems":
    case "minProperties":
      if (Number(params.limit) > 1) return here(`must have at least ${counted(error)}.`);
      return here(`must not be empty${holdsMany(path) ? ": add at least one" : ""}${example(path, root)}.`);
    case "maxLength":
    case "maxItems":
    case "maxProperties":
      return here(`must have at most ${counted(error)}.`);
    case "uniqueItems":
      return here("has the same entry twice: remove one of them.");
    case "pattern": {
      const meant = meantReference(value);
      const hint = meant === undefined ? "" : ` To take it from a variable, write \`${meant}\`.`;
      return here(`must be ${form ?? "of another form"}.${hint}`);
    }
    default:
      return here(`${error.message ?? "is not valid"}.`);
  }
}

function missing(path: Path, root: unknown): Fault {
  const shown = exampleOf(path, root);
  const what = holdsMany(path) ? "Add at least one" : "Add it";
  const message =
    shown === undefined ? `is missing. ${what}.` : `is missing. ${what}, for example \`${path.at(-1)}: ${shown}\`.`;
  return { path, on: "key", message };
}

function unknownKey(parent: Path, key: string, root: unknown): Fault {
  const of = parent.length === 0 ? "the configuration" : dotted(parent);
  const fault = (message: string): Fault => ({ path: [...parent, key], on: "key", message });
  const known = keysOf(parent, root);
  const [other] = kindsWith(parent, key);
  if (other !== undefined)
    return fault(
      `is for \`type: "${other}"\`, not for \`type: "${kindOf(parent, root)}"\`: remove it, or change the type.`,
    );
  const meant = nearest(key, known) ?? (parent.length === 0 ? keyElsewhere(key) : undefined);
  return fault(`is no key of ${of}; ${meant ? `did you mean \`${meant}\`?` : `it has ${known.join(", ")}.`}`);
}

function wrongName(path: Path, name: string, root: unknown): Fault {
  const [rule] = nameRules(path, root);
  const form = formOfPattern(rule?.pattern ?? "") ?? `a name of 1 to ${rule?.maxLength} characters`;
  const first = nearest(name.split(".")[0] ?? "", ["headers", "body"]);
  const isPlace =
    form.includes("`headers.<name>`") && name.includes(".") && first !== undefined && !name.startsWith(`${first}.`);
  const meant = isPlace ? ` Did you mean \`${[first, ...name.split(".").slice(1)].join(".")}\`?` : "";
  return { path: [...path, name], on: "key", message: `must be ${form}.${meant}` };
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
    return [{ ...error, params: { kinds: found.map((kind) => (kind === "*" ? '`"*"`' : kind)) } }];
  });
}

const words: Record<string, string> = {
  string: "text",
  array: "a list",
  object: "an object",
  integer: "a whole number",
  number: "a number",
  boolean: "`true` or `false`",
};

const kinds = (found: readonly unknown[]): string =>
  join([...new Set(found.flatMap((kind) => (words[String(kind)] ?? String(kind)).split(" or ")))]);

/** The choices there are, and the one that was probably meant; with the full stop. */
function choice(names: readonly string[], written: unknown): string {
  const meant = typeof written === "string" ? nearest(written, names) : undefined;
  const all = join(names.map((name) => `\`${name}\``));
  return meant === undefined ? `${all}.` : `${all}; did you mean \`${meant}\`?`;
}

function counted({ keyword, params }: SchemaError): string {
  const [one, more] = ({
    Length: ["character", "characters"],
    Items: ["entry", "entries"],
    Properties: ["key", "keys"],
  }[keyword.slice(3)] ?? ["", ""]) as [string, string];
  return `${params.limit} ${params.limit === 1 ? one : more}`;
}

function example(path: Path, root: unknown): string {
  const shown = exampleOf(path, root);
  return shown === undefined ? "" : `, for example \`${shown}\``;
}

/** How a list or an object is written, where it is the only thing to write. */
function brackets(found: readonly unknown[]): string {
  if (found.length > 1) return "";
  return found[0] === "array" ? ", in brackets: `[…]`" : found[0] === "object" ? ", in braces: `{…}`" : "";
}

/** The type of a number or a flag, which a text is not, whatever it holds. */
const bareKind = (type: unknown): string | undefined => ["integer", "number", "boolean"].find((bare) => bare === type);

/** A number or a flag that was written as text. */
function withoutQuotes(value: unknown, type: unknown): string {
  const isBare =
    type === "boolean" ? /^(true|false)$/ : /^(integer|number)$/.test(String(type)) ? /^\d+(\.\d+)?$/ : /^(?!)/;
  return typeof value === "string" && isBare.test(value.trim()) ? ", without quotes" : "";
}

const join = (names: readonly string[]): string =>
  names.length < 2 ? names.join("") : `${names.slice(0, -1).join(", ")} or ${names.at(-1)}`;

/** The patterns of the schema as people say them, after "must be". A test keeps this list whole. */
const FORMS: Readonly<Record<string, string>> = {
  "^([1-9][0-9]{0,8}(ms|s|m|h)|[1-9][0-9]{0,4}d)$":
    "a span of time, a number with `ms`, `s`, `m`, `h` or `d`, for example `30m` or `7d`",
  "^(off|[1-9][0-9]{0,8}(ms|s|m|h)|[1-9][0-9]{0,4}d)$":
    "a span of time, a number with `ms`, `s`, `m`, `h` or `d`, for example `30m`, or `off`",
  "^[1-9][0-9]{0,8}(ms|s|m|h)$": "a span of time, a number with `ms`, `s`, `m` or `h`, for example `30s`",
  "^[1-9][0-9]{0,11} ?(B|KiB|MiB|GiB)$":
    "a size, a number of bytes or a number with `B`, `KiB`, `MiB` or `GiB`, for example `1GiB`",
  "^[1-9][0-9]{0,8} ?(B|KiB|MiB)$": "a size, a number with `B`, `KiB` or `MiB`, for example `256KiB`",
  "^https?://[^ ]+$": "an address that begins with `https://` or `http://`, for example `https://example.com/path`",
  "^[0-9]{4}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])$": 'a day as year-month-day, for example `"2026-03-01"`',
  "^[0-9]{4}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])(T([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](\\.[0-9]{1,3})?Z)?$":
    'a day as year-month-day or a moment in UTC, for example `"2027-01-31"` or `"2027-01-31T12:00:00Z"`',
  "^(/[A-Za-z0-9._~-]+)+$":
    "a path of letters, digits, `.`, `_`, `~` and `-` that begins with `/` and does not end with one, for example `/hooks`",
  "^[A-Za-z][A-Za-z0-9._-]{0,63}/(\\*|[A-Za-z0-9._-]{1,128})$":
    "the tool of a server as `server/tool`, or `server/*` for all of its tools",
  "^webhook:(?:[ -~]{0,247}[!-~])$": "the name of a session that begins with `webhook:`, for example `webhook:github`",
  "^[A-Za-z0-9!#$%&'*+.^_`|~-]{1,128}$": "the name of a header, for example `authorization`",
  "^(@[a-z0-9~-][a-z0-9._~-]*/)?[a-z0-9~-][a-z0-9._~-]*$": "the name of a package, for example `@ai-sdk/mistral`",
  "^[^\\r\\n\\u0000]*$": "text in one line",
  "^[A-Za-z_][A-Za-z0-9_]*$": "the name of a variable: letters, digits and `_`, not a digit first",
  "^[A-Za-z][A-Za-z0-9._-]{0,63}$":
    "a name that begins with a letter, then letters, digits, `.`, `_` and `-`, at most 64 characters",
  "^(?!(wake|agent)$)[a-z][a-z0-9-]{0,63}$":
    "a name that begins with a small letter, then small letters, digits and `-`, at most 64 characters, but not `wake` or `agent`, which are taken",
  "^(headers|body)\\..*[^.]$":
    "a place in the request, `headers.<name>` or `body.<dotted path>`, for example `headers.x-github-event` or `body.action`",
};

/** Describes a text of each pattern, in words that follow "must be". */
export const formOfPattern = (pattern: string): string | undefined => FORMS[pattern];

/** The path of a JSON Pointer; steps into a list are numbers. */
function pathOf(pointer: string, root: unknown): Path {
  let node = root;
  return pointer
    .split("/")
    .slice(1)
    .map((word) => {
      const key = word.replaceAll("~1", "/").replaceAll("~0", "~");
      const step = Array.isArray(node) ? Number(key) : key;
      node = (node as Record<string | number, unknown> | null | undefined)?.[step];
      return step;
    });
}
