import type { Bundle } from "./bundle.ts";
import { type Json, type JsonObject, literal, mapValues } from "./json.ts";
import { header } from "./output.ts";
import { mapSchema, shapeOf } from "./schema.ts";
import { printShapes, withWritten } from "./types.ts";

const rootShape = "Root";

/** The shapes of the configuration, of which the complete configuration is one. */
export function configShapes({ document, components }: Bundle): JsonObject {
  return {
    ...components.schemas,
    [rootShape]: document,
  };
}

export const configRoot = rootShape;

/** The schema in one file, for editors and for the errors of the configuration. */
export function configSchema({ document, components }: Bundle): JsonObject {
  const inDefs = (schema: Json) =>
    mapSchema(schema, (inner) => {
      const shape = shapeOf(inner);
      return shape === undefined ? inner : { ...inner, $ref: `#/$defs/${shape}` };
    });
  const $schema = "https://json-schema.org/draft/2020-12/schema";
  return { $schema, ...(inDefs(document) as JsonObject), $defs: mapValues(components.schemas ?? {}, inDefs) };
}

export async function configTypes(bundle: Bundle): Promise<string> {
  const names = Object.keys(bundle.components.schemas ?? {});
  const { shapes, written } = withWritten(configShapes(bundle), (name) => `${name}Written`);
  const whole = shapes[`${rootShape}Written`] ?? written(shapes[rootShape] ?? {});
  const alias = (name: string, shape: string) => `export type ${name} = components["schemas"][${literal(shape)}];`;
  return [
    header("config.schema.yaml"),
    "",
    await printShapes({ ...shapes, [`${rootShape}Written`]: whole }),
    "/** The configuration with its defaults filled in. */",
    alias("Config", rootShape),
    "/** The configuration as a person writes it: what has a default may be left out. */",
    alias("ConfigFile", `${rootShape}Written`),
    "",
    ...names.map((name) => alias(name.endsWith("Config") ? name : `${name}Config`, name)),
    "",
  ].join("\n");
}
