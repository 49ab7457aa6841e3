import { demandOf, hintOf, insteadOf } from "#kit/fault-words.ts";
import type { BodyFault } from "#wire/call/body-fault.ts";

/** One fault of express-openapi-validator, which takes the keyword and the message from Ajv's error. */
export type ValidationFault = { path: string; message: string; errorCode?: string };

/** The fields that an object of a request may have: an object in the body, by the way to it, or the query. */
export type FieldsOf = (where: "body" | "query", way: readonly string[]) => readonly string[];

/** The maximum number of reported faults of a request. */
export const MOST_TOLD = 100;
const HINTED = 5;
/** The number of characters of an unknown field's name that are repeated: a stranger chooses these names. */
const NAME_LIMIT = 100;

/** The faults in the gateway's wording. Only the first few have hints: many unknown fields are not misspellings. */
export function faultsOf(found: readonly ValidationFault[], fieldsOf: FieldsOf): BodyFault[] {
  return found.slice(0, MOST_TOLD).map((fault, n) => {
    const pointer = pointerOf(fault.path);
    if (fault.errorCode?.startsWith("required.")) {
      const instead = insteadOf(nameIn(fault.path), unknownBeside(fault, found));
      return { pointer, message: instead === "" ? "is required" : `is required.${instead}` };
    }
    if (!isTooMany(fault)) return { pointer, message: inWords(fault) };
    if (n >= HINTED) return { pointer, message: "is unknown" };
    return { pointer, message: `is unknown${hintOf(nameIn(fault.path), fieldsOfFault(fault.path, fieldsOf))}` };
  });
}

function nameIn(path: string): string {
  return path.slice(path.lastIndexOf("/") + 1);
}

/** The unknown fields in the object that lacks a field. */
function unknownBeside({ path }: ValidationFault, found: readonly ValidationFault[]): object {
  const parent = path.slice(0, path.lastIndexOf("/") + 1);
  const names = found.slice(0, MOST_TOLD).flatMap((fault) => {
    const name = fault.path.slice(parent.length);
    return isTooMany(fault) && fault.path.startsWith(parent) && !name.includes("/") ? [name] : [];
  });
  return Object.fromEntries(names.map((name) => [name, true]));
}

function isTooMany({ errorCode, message }: ValidationFault): boolean {
  return errorCode?.startsWith("additionalProperties.") === true || message.startsWith("Unknown query");
}

function fieldsOfFault(path: string, fieldsOf: FieldsOf): readonly string[] {
  const [, where, ...way] = path.split("/");
  return fieldsOf(where === "body" ? "body" : "query", way.slice(0, -1));
}

function pointerOf(path: string): string {
  const [, where, ...rest] = path.split("/");
  const name = rest.join("/").slice(0, NAME_LIMIT);
  if (where === "body") return rest.length === 0 ? "" : `/${name}`;
  const kind = where === "params" ? "path" : where === "headers" ? "header" : "query";
  return `${kind}:${name}`;
}

/** Ajv's params are lost, but its message has the same facts. */
function inWords({ message, errorCode = "" }: ValidationFault): string {
  const [keyword = ""] = errorCode.split(".");
  const [, type = ""] = /^must be ([\w,]+)$/.exec(message) ?? [];
  const [, pattern] = /^must match pattern "(.*)"$/s.exec(message) ?? [];
  const [, allowed = ""] = /allowed values: (.*)$/s.exec(message) ?? [];
  const limit = Number(/-?[\d.]+/.exec(message)?.[0]);
  const params = { type: type.split(","), pattern, limit, allowedValues: allowed.split(",").map((one) => one.trim()) };
  const hasWords = keyword !== "enum" || allowed !== "";
  const demand =
    hasWords && keyword !== "const" && keyword !== "multipleOf" ? demandOf({ keyword, params }) : undefined;
  return demand === undefined ? message : `must ${demand}`;
}

/** The part of a schema that is read here. */
type Schema = {
  $ref?: string;
  properties?: Record<string, Schema>;
  additionalProperties?: boolean | Schema;
  items?: Schema;
  maxItems?: number;
  maxLength?: number;
};
/** A schema, or the one that it names. */
type NamedSchema = (schema: Schema | undefined) => Schema | undefined;
type Parameter = { $ref?: string; in?: string; name?: string };
type Operation = {
  parameters?: Parameter[];
  requestBody?: { content?: Record<string, { schema?: Schema }> };
};
type Document = {
  paths: Record<string, Record<string, Operation>>;
  components?: Record<string, Record<string, object>>;
};

/** Looks up in a contract which fields an operation's request may have. */
export function fieldsIn(document: object, place: Place): FieldsOf {
  const named = namedIn(document);
  const { parameters = [] } = operationAt(document, place);
  return (where, way) => {
    if (where === "query")
      return parameters.flatMap((one) => {
        const { in: place, name } = named(one) ?? {};
        return place === "query" && name !== undefined ? [name] : [];
      });
    let schema = named(bodySchemaIn(document, place));
    for (const step of way) {
      const { properties = {}, items } = schema ?? {};
      schema = named(Object.hasOwn(properties, step) ? properties[step] : items);
    }
    return Object.keys(schema?.properties ?? {});
  };
}

type Place = { path: string; method: string };

function operationAt(document: object, { path, method }: Place): Operation {
  return (document as Document).paths[path]?.[method.toLowerCase()] ?? {};
}

export function bodySchemaIn(document: object, place: Place): Schema | undefined {
  return operationAt(document, place).requestBody?.content?.["application/json"]?.schema;
}

/** Looks up the component that a part of the contract names. */
export function namedIn(document: object) {
  return <T extends { $ref?: string }>(part: T | undefined): T | undefined => {
    const [, kind = "", name = ""] = /^#\/components\/(\w+)\/(.+)$/.exec(part?.$ref ?? "") ?? [];
    return kind === "" ? part : ((document as Document).components?.[kind]?.[name] as T | undefined);
  };
}

/**
 * Shortens a body that the contract refuses: finding each of ten thousand faults would delay every other caller, and a hundred are reported. Only
 * parts that the contract does not allow are cut, and enough of them remains for the body to be refused. A valid body does not change.
 */
export function cutDown(body: unknown, schema: Schema | undefined, named: NamedSchema): unknown {
  const of = named(schema);
  if (of === undefined) return body;
  if (typeof body === "string") return cutText(body, of);
  if (Array.isArray(body)) cutList(body, of, named);
  else if (typeof body === "object" && body !== null) cutFields(body as Record<string, unknown>, of, named);
  return body;
}

/** A character is two units at most. */
function cutText(text: string, { maxLength = Infinity }: Schema): string {
  return text.length > maxLength * 2 + 2 ? text.slice(0, maxLength * 2 + 2) : text;
}

function cutList(list: unknown[], { maxItems = Infinity, items }: Schema, named: NamedSchema): void {
  const most = Math.max(maxItems + 1, MOST_TOLD);
  if (list.length > most) list.length = most;
  if (items) for (const [n, one] of list.entries()) list[n] = cutDown(one, items, named);
}

function cutFields(
  fields: Record<string, unknown>,
  { properties = {}, additionalProperties }: Schema,
  named: NamedSchema,
): void {
  for (const [name, schema] of Object.entries(properties))
    if (Object.hasOwn(fields, name)) fields[name] = cutDown(fields[name], schema, named);
  if (additionalProperties !== false) return;
  const unknown = Object.keys(fields).filter((name) => !Object.hasOwn(properties, name));
  for (const name of unknown.slice(MOST_TOLD)) delete fields[name];
}
