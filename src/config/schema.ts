import bundled from "#generated/config.schema.json" with { type: "json" };
import type { Path } from "./problems.ts";

type Schema = {
  $ref?: string;
  description?: string;
  const?: unknown;
  properties?: Record<string, Schema>;
  additionalProperties?: Schema | boolean;
  propertyNames?: Schema;
  items?: Schema;
  oneOf?: Schema[];
};

const root: Schema = bundled as Schema;

/** What the schema says of a key. */
export const aboutKey = (path: Path): string => at(path).find(({ description }) => description)?.description ?? "";

/** What form a value has to have: the words of the most general schema, as the nearest ones say what it is for. */
export const formOf = (path: Path): string => at(path).findLast(({ description }) => description)?.description ?? "";

/** What the names of the keys of an object have to be. */
export const nameRule = (path: Path): string =>
  at(path)
    .flatMap(({ propertyNames }) => (propertyNames ? views(propertyNames) : []))
    .find(({ description }) => description)?.description ?? "";

/** The keys that an object may have; or, of the kinds it may be, what one key is in each. */
export function keysOf(path: Path, tag?: string): string[] {
  const objects = at(path).flatMap(({ properties }) => (properties ? [properties] : []));
  if (tag === undefined) return [...new Set(objects.flatMap((properties) => Object.keys(properties)))];
  return objects.flatMap((properties) => (properties[tag]?.const === undefined ? [] : [String(properties[tag].const)]));
}

/** The schemas that hold for a place; with the choices opened there may be several. */
function at(path: Path): Schema[] {
  let here = views(root);
  for (const step of path) {
    here = here.flatMap((schema) => {
      if (typeof step === "number") return schema.items ? views(schema.items) : [];
      const { properties = {}, additionalProperties } = schema;
      if (Object.hasOwn(properties, step)) return views(properties[step] as Schema);
      return typeof additionalProperties === "object" ? views(additionalProperties) : [];
    });
  }
  return here;
}

/** A schema as it is, then what it refers to, then its choices. */
function views(schema: Schema): Schema[] {
  return [
    schema,
    ...(schema.$ref === undefined ? [] : views(follow(schema.$ref))),
    ...(schema.oneOf ?? []).flatMap((choice) => views(choice)),
  ];
}

function follow(ref: string): Schema {
  const steps = ref.split("/").slice(1);
  return steps.reduce<unknown>((node, step) => (node as Record<string, unknown>)[step], root) as Schema;
}
