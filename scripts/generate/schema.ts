import { grammar } from "./grammar.ts";
import { isObject, type Json, type JsonObject, mapValues } from "./json.ts";

/** A JSON Schema of a bundle: its references point to the bundle's shared shapes. */
export type Schema = JsonObject | boolean;

const shapePrefix = "#/components/schemas/";

/** The name of the shared shape that a schema refers to, if it does. */
export function shapeOf(schema: Json | undefined): string | undefined {
  return isObject(schema) && typeof schema.$ref === "string" && schema.$ref.startsWith(shapePrefix)
    ? schema.$ref.slice(shapePrefix.length)
    : undefined;
}

export function refTo(shape: string): JsonObject {
  return { $ref: `${shapePrefix}${shape}` };
}

/** Applies a function to every schema inside one, from the inside out. Values without a schema are not changed. */
export function mapSchema(schema: Json, change: (schema: JsonObject) => JsonObject): Json {
  if (!isObject(schema)) return schema;
  return change(
    mapValues(schema, (value, key) => {
      const kind = grammar.schema?.[key];
      if (kind === "schema") return mapSchema(value, change);
      if (kind === "schema[]" && Array.isArray(value)) return value.map((item) => mapSchema(item, change));
      if (kind === "schema*" && isObject(value)) return mapValues(value, (item) => mapSchema(item, change));
      return value;
    }),
  );
}

/** Every schema inside one, starting with the schema itself. */
export function* schemasIn(schema: Json | undefined): Generator<JsonObject> {
  if (!isObject(schema)) return;
  yield schema;
  for (const [key, value] of Object.entries(schema)) {
    const kind = grammar.schema?.[key];
    if (kind === "schema") yield* schemasIn(value);
    if (kind === "schema[]" && Array.isArray(value)) for (const item of value) yield* schemasIn(item);
    if (kind === "schema*" && isObject(value)) for (const item of Object.values(value)) yield* schemasIn(item);
  }
}

/** The shapes for which the test is true, for the shape itself or for a shape that it refers to. */
export function shapesWith(shapes: JsonObject, test: (schema: JsonObject) => boolean): Set<string> {
  const found = new Set<string>();
  for (let before = -1; before !== found.size; ) {
    before = found.size;
    for (const [name, shape] of Object.entries(shapes)) {
      if (found.has(name)) continue;
      for (const schema of schemasIn(shape)) if (test(schema) || found.has(shapeOf(schema) ?? "")) found.add(name);
    }
  }
  return found;
}

/** A recursive shape, as the names of the cycle; undefined if there is none. */
export function findCycle(shapes: JsonObject): string[] | undefined {
  const done = new Set<string>();
  const visit = (name: string, path: string[]): string[] | undefined => {
    if (path.includes(name)) return [...path.slice(path.indexOf(name)), name];
    if (done.has(name)) return undefined;
    for (const schema of schemasIn(shapes[name])) {
      const next = shapeOf(schema);
      const cycle = next === undefined ? undefined : visit(next, [...path, name]);
      if (cycle !== undefined) return cycle;
    }
    done.add(name);
    return undefined;
  };
  for (const name of Object.keys(shapes)) {
    const cycle = visit(name, []);
    if (cycle !== undefined) return cycle;
  }
  return undefined;
}
