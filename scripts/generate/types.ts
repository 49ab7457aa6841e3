import openapiTS, { astToString } from "openapi-typescript";
import type { Bundle } from "./bundle.ts";
import { isObject, type Json, type JsonObject, key, literal, mapValues, object } from "./json.ts";
import { header } from "./output.ts";
import { mapSchema, refTo, shapeOf, shapesWith } from "./schema.ts";
import { SpecError } from "./spec-files.ts";

/** Prints the types of an OpenAPI document, in which a field with a default is always present. */
async function printTypes(document: JsonObject): Promise<string> {
  const source = withoutDiscriminators(document) as unknown as Parameters<typeof openapiTS>[0];
  const nodes = await openapiTS(source, { defaultNonNullable: true, emptyObjectsUnknown: true, silent: true });
  return astToString(nodes);
}

/** An OpenAPI document with only shapes, for contracts that are not HTTP. */
export function printShapes(shapes: JsonObject): Promise<string> {
  return printTypes({ openapi: "3.1.0", info: { title: "", version: "" }, paths: {}, components: { schemas: shapes } });
}

/** `export type Turn = components["schemas"]["Turn"]` for each shape, so that code can name them. */
export function printAliases(names: string[]): string {
  return names.map((name) => `export type ${aliasOf(name)} = components["schemas"][${literal(name)}];`).join("\n");
}

const reserved = ["components", "operations", "paths", "webhooks"];

function aliasOf(shape: string): string {
  if (/^[A-Z]\w*$/.test(shape) && !reserved.includes(shape)) return shape;
  throw new SpecError(`the shape ${shape}`, "a shape's name begins with a capital letter and holds letters and digits");
}

/** The type of a schema in a module that imports the aliases: the name of a shape, a plain type, or else the type at `path`. */
export function typeOf(schema: Json | undefined, path: string, shapes: Set<string>): string {
  const shape = shapeOf(schema);
  if (shape !== undefined) {
    shapes.add(shape);
    return shape;
  }
  const { type, enum: values, const: only } = object(schema);
  const plain = values === undefined && only === undefined ? plainTypes[String(type)] : undefined;
  if (plain === undefined) shapes.add("operations");
  return plain ?? path;
}

const plainTypes: Record<string, string> = {
  string: "string",
  integer: "number",
  number: "number",
  boolean: "boolean",
};

/** The shape that a caller writes instead of another one with defaults. */
export function sentName(shape: string): string {
  return `${shape}Sent`;
}

/** The shapes that a caller writes in another form than a handler gets. */
export function sentShapes({ components }: Bundle): Set<string> {
  return withWritten(components.schemas ?? {}, sentName).differ;
}

/** Types of REST and webhooks. A field with a default is present; it is optional in `…Sent`, the form of requests. */
export async function restTypes({ document, components }: Bundle): Promise<string> {
  const { shapes, differ } = withWritten(components.schemas ?? {}, sentName);
  const whole = structuredClone({ ...document, components: { ...components, schemas: shapes } });
  for (const media of bodiesOf(whole)) {
    const shape = shapeOf(media.schema) ?? "";
    if (differ.has(shape)) media.schema = refTo(sentName(shape));
  }
  return [
    header("openapi.yaml"),
    "// What has a default is present. It may be left out in what a caller sends: the shapes `…Sent`.",
    "",
    await printTypes(whole),
    printAliases(Object.keys(shapes)),
    "",
  ].join("\n");
}

/** Every media type of every request's body. */
function bodiesOf(document: JsonObject): JsonObject[] {
  return Object.values(object(document.paths))
    .flatMap((item) => Object.values(object(item)))
    .flatMap((operation) => Object.values(object(object(object(operation).requestBody).content)))
    .filter(isObject);
}

/** Constants distinguish the members of a union; with the keyword, openapi-typescript would write them a second time. */
function withoutDiscriminators(node: Json): Json {
  if (Array.isArray(node)) return node.map(withoutDiscriminators);
  if (!isObject(node)) return node;
  const { discriminator, ...rest } = node;
  const isKeyword = isObject(discriminator) && typeof discriminator.propertyName === "string";
  return mapValues(isKeyword ? rest : node, withoutDiscriminators);
}

/**
 * Adds a twin without defaults to the shapes that have a default: the form in which a person writes the value. Returns the shapes with the twins, the
 * names of those with a twin, and a function that gives a schema in its written form.
 */
export function withWritten(shapes: JsonObject, twin: (name: string) => string) {
  const differ = shapesWith(shapes, (schema) => Object.values(object(schema.properties)).some(hasDefault));
  const written = (schema: Json): Json =>
    mapSchema(schema, (inner) => {
      const { default: _, ...rest } = inner;
      const shape = shapeOf(rest);
      return shape !== undefined && differ.has(shape) ? { ...rest, ...refTo(twin(shape)) } : rest;
    });
  const twins: JsonObject = {};
  for (const name of differ) twins[twin(name)] = written(shapes[name] as Json);
  for (const name of Object.keys(twins)) {
    if (Object.hasOwn(shapes, name)) throw new SpecError(`the shape ${name}`, "another shape needs this name");
  }
  return { shapes: { ...shapes, ...twins }, differ, written };
}

function hasDefault(schema: Json): boolean {
  return isObject(schema) && "default" in schema;
}

/** An interface with one line for each name. */
export function printMap(name: string, entries: Record<string, string>): string {
  return `export interface ${name} {\n${Object.entries(entries)
    .map(([entry, type]) => `  ${key(entry)}: ${type};`)
    .join("\n")}\n}`;
}
