import { demandOf, hintOf, insteadOf } from "#kit/fault-words.ts";
import type { BodyFault } from "#wire/call/body-fault.ts";

/** One fault, as express-openapi-validator tells it: of what Ajv found it keeps the keyword and the message. */
export type Found = { path: string; message: string; errorCode?: string };

/** The fields that an object of a request may have: of its body by the way to it, or of its query. */
export type FieldsOf = (where: "body" | "query", way: readonly string[]) => readonly string[];

/** So many faults of a request are told at most. */
export const MOST_TOLD = 100;
const HINTED = 5;
/** A stranger chooses the names of unknown fields: only so much of one is repeated. */
const NAME_LIMIT = 100;

/** What was found, in our words; all that there is to choose from is named once, and whoever writes many unknown fields has misspelt none. */
export const toldOf = (found: readonly Found[], fieldsOf: FieldsOf): BodyFault[] => {
  let isNamed = false;
  return found.slice(0, MOST_TOLD).map((fault, n) => {
    const pointer = pointerOf(fault.path);
    if (fault.errorCode?.startsWith("required.")) {
      const instead = insteadOf(fault.path.split("/").at(-1) ?? "", unknownBeside(fault, found));
      return { pointer, message: instead === "" ? "is required" : `is required.${instead}` };
    }
    if (!isTooMany(fault)) return { pointer, message: inWords(fault) };
    if (n >= HINTED) return { pointer, message: "is unknown" };
    const known = fieldsOfFault(fault.path, fieldsOf);
    const hint = hintOf(fault.path.split("/").at(-1) ?? "", known);
    const message = isNamed && hint.startsWith(LIST) ? "is unknown" : `is unknown${hint}`;
    isNamed ||= hint.startsWith(LIST);
    return { pointer, message };
  });
};

const LIST = " (there ";

/** Fields that are unknown, in the object where one is missing. */
const unknownBeside = ({ path }: Found, found: readonly Found[]): object => {
  const parent = path.slice(0, path.lastIndexOf("/") + 1);
  const names = found.slice(0, MOST_TOLD).flatMap((fault) => {
    const name = fault.path.slice(parent.length);
    return isTooMany(fault) && fault.path.startsWith(parent) && !name.includes("/") ? [name] : [];
  });
  return Object.fromEntries(names.map((name) => [name, true]));
};

const isTooMany = ({ errorCode, message }: Found): boolean =>
  errorCode?.startsWith("additionalProperties.") === true || message.startsWith("Unknown query");

const fieldsOfFault = (path: string, fieldsOf: FieldsOf): readonly string[] => {
  const [, where, ...way] = path.split("/");
  return fieldsOf(where === "body" ? "body" : "query", way.slice(0, -1));
};

const pointerOf = (path: string): string => {
  const [, where, ...rest] = path.split("/");
  const name = rest.join("/").slice(0, NAME_LIMIT);
  if (where === "body") return rest.length === 0 ? "" : `/${name}`;
  const kind = where === "params" ? "path" : where === "headers" ? "header" : "query";
  return `${kind}:${name}`;
};

/** Ajv's message has what its params had. */
const inWords = ({ message, errorCode = "" }: Found): string => {
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
};

/** As much of a schema as is looked at. */
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
export const fieldsIn = (document: object, place: Place): FieldsOf => {
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
};

type Place = { path: string; method: string };

const operationAt = (document: object, { path, method }: Place): Operation =>
  (document as Document).paths[path]?.[method.toLowerCase()] ?? {};

/** What an operation's body is held to. */
export const bodySchemaIn = (document: object, place: Place): Schema | undefined =>
  operationAt(document, place).requestBody?.content?.["application/json"]?.schema;

/** Looks up what parts of a contract name. */
export const namedIn =
  (document: object) =>
  <T extends { $ref?: string }>(part: T | undefined): T | undefined => {
    const [, kind = "", name = ""] = /^#\/components\/(\w+)\/(.+)$/.exec(part?.$ref ?? "") ?? [];
    return kind === "" ? part : ((document as Document).components?.[kind]?.[name] as T | undefined);
  };

/**
 * Takes out of a body what makes it no worse: to find each of ten thousand faults in it would stand in everybody's way, and a hundred are told.
 * What goes is beyond what the contract takes, and enough of that stays for the body to be refused; one that keeps to the contract stays
 * as it is.
 */
export const cutDown = (body: unknown, schema: Schema | undefined, named: NamedSchema): unknown => {
  const of = named(schema);
  if (of === undefined) return body;
  if (typeof body === "string") return cutText(body, of);
  if (Array.isArray(body)) cutList(body, of, named);
  else if (typeof body === "object" && body !== null) cutFields(body as Record<string, unknown>, of, named);
  return body;
};

/** A character is two units at most. */
const cutText = (text: string, { maxLength = Infinity }: Schema): string =>
  text.length > maxLength * 2 + 2 ? text.slice(0, maxLength * 2 + 2) : text;

const cutList = (list: unknown[], { maxItems = Infinity, items }: Schema, named: NamedSchema): void => {
  const most = Math.max(maxItems + 1, MOST_TOLD);
  if (list.length > most) list.length = most;
  if (items) for (const [n, one] of list.entries()) list[n] = cutDown(one, items, named);
};

const cutFields = (
  fields: Record<string, unknown>,
  { properties = {}, additionalProperties }: Schema,
  named: NamedSchema,
): void => {
  for (const [name, schema] of Object.entries(properties))
    if (Object.hasOwn(fields, name)) fields[name] = cutDown(fields[name], schema, named);
  if (additionalProperties !== false) return;
  const unknown = Object.keys(fields).filter((name) => !Object.hasOwn(properties, name));
  for (const name of unknown.slice(MOST_TOLD)) delete fields[name];
};
