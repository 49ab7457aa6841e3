import { type JsonObject, key, literal, object, texts } from "./json.ts";
import type { Operation } from "./operations.ts";
import { header } from "./output.ts";
import { refTo, type Schema, shapeOf } from "./schema.ts";

/** Operations whose replies are written by code of their own: those that are called all the time. */
const BUSY = new Set(["chat.send", "completions.create", "hooks.wake", "skills.trigger"]);

/** Writes their replies as JSON. Nothing is asked of a value that its shape says already: JSON.stringify finds out each time. */
export function printWriters(shapes: JsonObject, operations: Operation[]): string {
  const used = new Set<string>();
  const records = operations
    .filter(({ id }) => BUSY.has(id))
    .map((operation) => {
      const lines = writtenOf(operation).map(([as, shape]) => {
        used.add(shape);
        return `    ${literal(as)}: write${shape},\n`;
      });
      return `  ${literal(operation.id)}: {\n${lines.join("")}  },`;
    });
  const functions = [...used].map((shape) => {
    const text = joined(partsOf(shapes, refTo(shape), "body", []));
    return `const write${shape} = (body: ${shape}): string =>\n  ${text};`;
  });
  return [
    header("openapi.yaml"),
    `import type { ${[...used].sort().join(", ")} } from "../rest-types.ts";`,
    `import { quote } from "./quote.ts";`,
    "",
    `const number = (value: number): string => (Number.isFinite(value) ? "" + value : "null");`,
    "",
    ...functions.flatMap((code) => [code, ""]),
    "/** Replies as JSON, by operation and by what the reply is called. */",
    `export const writers = {\n${records.join("\n")}\n};`,
    "",
  ].join("\n");
}

/** The replies that are one document of JSON, and its shape; one without a shape of its own is left to JSON.stringify. */
const writtenOf = ({ replies, answers }: Operation): [as: string, shape: string][] =>
  replies.flatMap(({ as, status, type }) => {
    if (type !== "application/json") return [];
    const shape = shapeOf(answers.find((answer) => answer.status === status && answer.type === type)?.schema);
    return shape === undefined ? [] : [[as, shape]];
  });

/** A piece of the text as it is, or code that makes one. */
type Part = { text: string } | { code: string };

/** What could hold more than its schema says, or itself, is left to JSON.stringify. */
const partsOf = (shapes: JsonObject, schema: Schema, at: string, within: readonly string[]): Part[] => {
  const shape = shapeOf(schema);
  if (shape !== undefined && !within.includes(shape))
    return partsOf(shapes, shapes[shape] as Schema, at, [...within, shape]);
  const { type, const: only, items } = object(schema as JsonObject);
  if (only !== undefined) return [{ text: literal(only) }];
  switch (type) {
    case "null":
      return [{ text: "null" }];
    case "string":
      return [{ code: `quote(${at})` }];
    case "integer":
    case "number":
      return [{ code: `number(${at})` }];
    case "boolean":
      return [{ code: at }];
    case "array": {
      const one = joined(partsOf(shapes, items as Schema, "one", within));
      return [{ text: "[" }, { code: `${at}.map((one) => ${one}).join()` }, { text: "]" }];
    }
    case "object":
      return partsOfObject(shapes, object(schema as JsonObject), at, within) ?? [stringified(at)];
    default:
      return [stringified(at)];
  }
};

const stringified = (at: string): Part => ({ code: `JSON.stringify(${at})` });

/** Undefined where its members are not known, or not where the first comma stands. */
const partsOfObject = (
  shapes: JsonObject,
  schema: JsonObject,
  at: string,
  within: readonly string[],
): Part[] | undefined => {
  if (schema.additionalProperties !== false) return undefined;
  const required = new Set(texts(schema.required));
  const parts: Part[] = [];
  let comma = "";
  for (const [name, inner] of Object.entries(object(schema.properties))) {
    const value = key(name) === name ? `${at}.${name}` : `${at}[${literal(name)}]`;
    const said: Part[] = [{ text: `${comma}${literal(name)}:` }, ...partsOf(shapes, inner as Schema, value, within)];
    if (required.has(name)) parts.push(...said);
    else if (comma === "") return undefined;
    else parts.push({ code: `(${value} === undefined ? "" : ${joined(said)})` });
    comma = ",";
  }
  return [{ text: "{" }, ...parts, { text: "}" }];
};

/** One expression: texts that stand side by side are one. */
const joined = (parts: Part[]): string => {
  const pieces: string[] = [];
  let held = "";
  for (const part of parts) {
    if ("text" in part) held += part.text;
    else {
      if (held !== "") pieces.push(literal(held));
      held = "";
      pieces.push(part.code);
    }
  }
  if (held !== "") pieces.push(literal(held));
  return pieces.join(" + ");
};
