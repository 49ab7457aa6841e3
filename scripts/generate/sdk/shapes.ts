import type { Bundle } from "../bundle.ts";
import { isObject, type Json, type JsonObject, list, object, text, texts } from "../json.ts";
import { shapeOf } from "../schema.ts";
import { SpecError } from "../spec-files.ts";

/** The type of a value, in a form for any language. */
export type Type =
  | { kind: "string" | "integer" | "number" | "boolean" | "null" | "unknown" }
  | { kind: "literal"; value: string | number | boolean }
  | { kind: "named"; name: string }
  | { kind: "list" | "map"; of: Type }
  | { kind: "union"; of: Type[] }
  | { kind: "record"; fields: Field[]; open: boolean };

export type Field = { name: string; doc: string; required: boolean; type: Type };

/** A shape of the contract with its name. */
export type Shape = { name: string; doc: string; type: Type };

/** The shapes that some names refer to, sorted by name. */
export function shapesFrom(bundle: Bundle, roots: Iterable<string>): Shape[] {
  const schemas = bundle.components.schemas ?? {};
  const found = new Map<string, Shape>();
  const visit = (name: string): void => {
    if (found.has(name)) return;
    const schema = schemas[name];
    if (schema === undefined) throw new SpecError(`the shape ${name}`, "it is not there");
    const shape = { name, doc: text(object(schema).description), type: typeOfSchema(schema) };
    found.set(name, shape);
    for (const next of namesIn(shape.type)) visit(next);
  };
  for (const name of roots) visit(name);
  return [...found.values()].sort((a, b) => (a.name < b.name ? -1 : 1));
}

/** Every shape that a type names. */
export function namesIn(type: Type): string[] {
  if (type.kind === "named") return [type.name];
  if (type.kind === "list" || type.kind === "map") return namesIn(type.of);
  if (type.kind === "union") return type.of.flatMap(namesIn);
  if (type.kind === "record") return type.fields.flatMap((field) => namesIn(field.type));
  return [];
}

export function typeOfSchema(schema: Json | undefined): Type {
  if (!isObject(schema)) return { kind: "unknown" };
  const name = shapeOf(schema);
  if (name !== undefined) return { kind: "named", name };
  const either = list(schema.oneOf ?? schema.anyOf);
  if (either.length > 0) return unionOf(either.map(typeOfSchema));
  if (schema.const !== undefined) return literalType(schema.const);
  if (schema.enum !== undefined) return unionOf(list(schema.enum).map(literalType));
  if (Array.isArray(schema.type)) return unionOf(texts(schema.type).map((type) => plainType(type, schema)));
  return plainType(text(schema.type), schema);
}

function literalType(value: Json): Type {
  return value === null ? { kind: "null" } : { kind: "literal", value: value as string | number | boolean };
}

function plainType(type: string, schema: JsonObject): Type {
  switch (type) {
    case "string":
    case "integer":
    case "number":
    case "boolean":
    case "null":
      return { kind: type };
    case "array":
      return { kind: "list", of: typeOfSchema(schema.items) };
    case "object":
      return objectType(schema);
    default:
      return { kind: "unknown" };
  }
}

function objectType(schema: JsonObject): Type {
  if (schema.properties === undefined) return { kind: "map", of: typeOfSchema(schema.additionalProperties) };
  const required = texts(schema.required);
  const fields = Object.entries(object(schema.properties)).map(([name, property]) => ({
    name,
    doc: text(object(property).description),
    required: required.includes(name),
    type: typeOfSchema(property),
  }));
  return { kind: "record", fields, open: schema.additionalProperties !== false };
}

/** One type of several; duplicates are removed. */
function unionOf(types: Type[]): Type {
  const flat = types.flatMap((type) => (type.kind === "union" ? type.of : [type]));
  const different = flat.filter((type, index) => flat.findIndex((other) => isSame(other, type)) === index);
  return different.length === 1 && different[0] ? different[0] : { kind: "union", of: different };
}

function isSame(a: Type, b: Type): boolean {
  return JSON.stringify(a) === JSON.stringify(b);
}
