import { type Bundle, resolve as resolveIn } from "./bundle.ts";
import type { ErrorRows } from "./errors.ts";
import { isObject, type Json, type JsonObject, list, literal, object, text, texts } from "./json.ts";
import { header } from "./output.ts";
import { findCycle, type Schema } from "./schema.ts";
import { SpecError } from "./spec-files.ts";
import { printAliases, printMap, printShapes, withWritten } from "./types.ts";

/** One method of openrpc.json, in the form that the printers need. */
export type Method = { name: string; params: JsonObject; result: Schema };

/** Reads the methods. A recursive shape is refused: the OpenRPC generator would unfold it until memory is full. */
export function readMethods({ document, components }: Bundle, errors: ErrorRows): Method[] {
  const shapes = components.schemas ?? {};
  const cycle = findCycle(shapes);
  if (cycle !== undefined) {
    throw new SpecError("specs/openrpc.json", `the shape ${cycle[0]} holds itself: ${cycle.join(" -> ")}`);
  }
  const resolve = (node: Json | undefined) => resolveIn(node, components);
  return list(document.methods).map((node) => {
    const { name, params, result, "x-errors": names, errors: described } = object(node);
    const refuse = (message: string): never => {
      throw new SpecError(`specs/openrpc.json, ${text(name)}`, message);
    };
    const codes = new Set<Json | undefined>(list(described).map((error) => resolve(error).code));
    for (const error of texts(names)) {
      const { code } = errors[error] ?? refuse(`specs/errors.yaml has no row ${error}`);
      if (code === null) refuse(`${error} has no RPC code`);
      if (!codes.has(code)) refuse(`it names ${error}, but describes no error of code ${code}`);
    }
    const properties: JsonObject = {};
    const required: string[] = [];
    for (const param of list(params).map(resolve)) {
      const { schema = true, description } = param;
      properties[text(param.name)] = isObject(schema) && description ? { description, ...schema } : schema;
      if (param.required === true) required.push(text(param.name));
    }
    const type = { type: "object", additionalProperties: false, properties };
    return {
      name: text(name),
      params: required.length > 0 ? { ...type, required } : type,
      result: (resolve(result).schema as Schema | undefined) ?? true,
    };
  });
}

export async function rpcTypes({ components }: Bundle, methods: Method[]): Promise<string> {
  const names = Object.keys(components.schemas ?? {});
  const { shapes, written } = withWritten(components.schemas ?? {}, (name) => `${name}Sent`);
  const entries: JsonObject = {};
  for (const { name, params, result } of methods) {
    entries[`${name}.params`] = params;
    entries[`${name}.sent`] = written(params);
    entries[`${name}.result`] = result;
  }
  const schema = (name: string) => `components["schemas"][${literal(name)}]`;
  return [
    header("openrpc.json"),
    "",
    await printShapes({ ...shapes, ...entries }),
    printAliases(names),
    "",
    "/**",
    " * Each method: its params as a handler gets them (what has a default is present), as a caller sends them (what has a",
    " * default may be left out), and its result.",
    " */",
    printMap(
      "RpcMethods",
      Object.fromEntries(
        methods.map(({ name }) => [
          name,
          `{ params: ${schema(`${name}.params`)}; sent: ${schema(`${name}.sent`)}; result: ${schema(`${name}.result`)} }`,
        ]),
      ),
    ),
    "",
    "export type RpcMethod = keyof RpcMethods;",
    "",
  ].join("\n");
}
