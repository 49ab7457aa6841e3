import { isObject, type Json, type JsonObject, list, object, text, texts } from "../../generate/json.ts";
import { code } from "./words.ts";

/** The shapes of one document, with their links. */
export type Shapes = { prefix: string; shapes: JsonObject };

function nameOf(ref: Json | undefined): string {
  return /^#\/components\/schemas\/(.+)$/.exec(text(ref))?.[1] ?? "";
}

/** A shape with its own section on the page. The others are described where they are used. */
function hasPlace(shape: JsonObject): boolean {
  return shape.properties !== undefined || list(shape.oneOf).filter((one) => object(one).$ref !== undefined).length > 1;
}

/** The shape that a schema refers to, with the siblings of the reference. */
export function resolve(schema: JsonObject, { shapes }: Shapes): JsonObject {
  const name = nameOf(schema.$ref);
  if (name === "") return schema;
  const { $ref, ...beside } = schema;
  return { ...resolve(object(shapes[name]), { prefix: "", shapes }), ...beside };
}

/** The type of a value, in a few words: `text`, `list of Skill`, `"completed" or "failed"`. */
function typeOf(value: Json | undefined, all: Shapes): string {
  const schema = object(value);
  const name = nameOf(schema.$ref);
  if (name !== "") {
    const shape = object(all.shapes[name]);
    return hasPlace(shape) ? `[${name}](#${all.prefix}-${name})` : typeOf(shape, all);
  }
  if (schema.const !== undefined) return code(JSON.stringify(schema.const));
  if (Array.isArray(schema.enum)) return joined(schema.enum.map((one) => code(JSON.stringify(one))));
  if (Array.isArray(schema.oneOf)) return joined(schema.oneOf.map((one) => typeOf(one, all)));
  const types = Array.isArray(schema.type) ? texts(schema.type) : [text(schema.type)];
  return joined(types.map((type) => nounOf(type, schema, all)));
}

function joined(types: readonly string[]): string {
  return [...new Set(types)].join(" or ");
}

function nounOf(type: string, schema: JsonObject, all: Shapes): string {
  if (type === "array") return `list of ${typeOf(schema.items, all)}`;
  if (type === "object" && isObject(schema.additionalProperties))
    return `object of ${typeOf(schema.additionalProperties, all)}`;
  return type === "" ? "any value" : type;
}

/** The rules for a value, apart from its type. */
function limitsOf(schema: JsonObject): string[] {
  const range = (from: Json | undefined, to: Json | undefined, noun = ""): string[] => {
    const of = noun === "" ? "" : ` ${noun}${(to ?? from) === 1 ? "" : "s"}`;
    if (from === undefined && to === undefined) return [];
    if (to === undefined) return from === 0 ? [] : [`at least ${from}${of}`];
    return [from === undefined || from === 0 ? `at most ${to}${of}` : `${from} to ${to}${of}`];
  };
  return [
    ...(schema.default === undefined ? [] : [`default ${code(JSON.stringify(schema.default))}`]),
    ...range(schema.minLength, schema.maxLength, "character"),
    ...range(schema.minItems, schema.maxItems, "item"),
    ...range(schema.minimum, schema.maximum),
    ...(schema.uniqueItems === true ? ["none twice"] : []),
    ...list(schema.examples)
      .slice(0, 1)
      .map((one) => `such as ${code(typeof one === "string" ? one : JSON.stringify(one))}`),
  ];
}

export type Field = { name: string; required: boolean; schema: JsonObject; description?: string };

/**
 * Fields with their content, one below the other, because a table would not fit a phone. In requests the required fields are marked; in replies those
 * that may be missing.
 */
export function fieldList(fields: readonly Field[], all: Shapes, isSent: boolean): string {
  return fields
    .map(({ name, required, schema, description }) => {
      const whole = resolve(schema, all);
      const limits = hasPlace(whole) ? [] : limitsOf(whole);
      const words = [description || text(whole.description), ...(limits.length > 0 ? [sentence(limits)] : [])];
      const mark = required === isSent ? `, ${isSent ? "required" : "optional"}` : "";
      const about = words.filter(Boolean).join(" ").replaceAll(/\s+/g, " ");
      return `- **\`${name}\`** (${typeOf(schema, all)}${mark})${about === "" ? "" : `: ${about}`}`;
    })
    .join("\n");
}

function sentence(parts: readonly string[]): string {
  const words = parts.join(", ");
  return `${words[0]?.toUpperCase()}${words.slice(1)}.`;
}

/** The content of a schema: its fields, or the shapes that it may be. */
export function contentOf(schema: JsonObject, all: Shapes, isSent = false): string {
  const shape = resolve(schema, all);
  if (shape.properties === undefined) return typeOf(schema, all);
  const required = texts(shape.required);
  const fields = Object.entries(object(shape.properties)).map(([name, field]) => {
    return { name, required: required.includes(name), schema: object(field) };
  });
  return fieldList(fields, all, isSent);
}

/** The shapes that a text links to, directly or through others. The others are described completely where they are used. */
export function shapeSections(all: Shapes, page: string): string[] {
  const left = new Set(Object.keys(all.shapes).filter((name) => hasPlace(object(all.shapes[name]))));
  const found: string[] = [];
  const add = (markdown: string): void => {
    for (const [, name = ""] of markdown.matchAll(new RegExp(`\\]\\(#${all.prefix}-(\\w+)\\)`, "g"))) {
      if (!left.delete(name)) continue;
      const shape = object(all.shapes[name]);
      const section = `### ${name} {#${all.prefix}-${name}}\n\n${text(shape.description)}\n\n${contentOf(shape, all)}`;
      found.push(section);
      add(section);
    }
  };
  add(page);
  return found.sort();
}
