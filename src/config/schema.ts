import bundled from "#generated/config.schema.json" with { type: "json" };
import type { Path } from "./problems.ts";

type Schema = {
  $ref?: string;
  type?: string;
  const?: unknown;
  enum?: unknown[];
  examples?: unknown[];
  pattern?: string;
  maxLength?: number;
  minProperties?: number;
  properties?: Record<string, Schema>;
  additionalProperties?: Schema | boolean;
  propertyNames?: Schema;
  items?: Schema;
  oneOf?: Schema[];
  discriminator?: { propertyName: string };
};

const root: Schema = bundled as Schema;

/** A value for a place, as a person writes it; that of the nearest schema which shows one. */
export function exampleOf(path: Path, whole: unknown): string | undefined {
  const here = at(path, whole);
  const shown = here.find(({ examples }) => examples)?.examples?.[0] ?? here.find((schema) => schema.enum)?.enum?.[0];
  return shown === undefined ? undefined : json5(shown);
}

/** The patterns that a text at a place may have. */
export const patternsOf = (path: Path, whole: unknown): string[] =>
  at(path, whole).flatMap(({ pattern }) => pattern ?? []);

/** The rules for the names of the keys of an object. */
export const nameRules = (path: Path, whole: unknown): Schema[] =>
  at(path, whole)
    .flatMap(({ propertyNames }) => (propertyNames ? views(propertyNames) : []))
    .filter(({ pattern, maxLength }) => pattern !== undefined || maxLength !== undefined);

/** Tells whether a place is an object that needs at least one key of a person's choice. */
export const holdsMany = (path: Path): boolean => at(path).some(({ minProperties = 0 }) => minProperties > 0);

/** The keys that an object may have. */
export const keysOf = (path: Path, whole: unknown): string[] => [
  ...new Set(at(path, whole).flatMap(({ properties }) => Object.keys(properties ?? {}))),
];

/** The possible tags of an object of several kinds. */
export const tagsOf = (path: Path, tag: string): string[] =>
  at(path).flatMap(({ properties }) => (properties?.[tag]?.const === undefined ? [] : [String(properties[tag].const)]));

/** The kinds of an object that do have a key, where it is of several kinds. */
export const kindsWith = (path: Path, key: string): string[] =>
  at(path).flatMap(({ properties }) =>
    properties?.[key] && properties.type?.const !== undefined ? [String(properties.type.const)] : [],
  );

/** The kind that an object says it is. */
export const kindOf = (path: Path, whole: unknown): unknown =>
  at(path, whole).find(({ properties }) => properties?.type?.const !== undefined)?.properties?.type?.const;

/** Where a key stands that was written at the top: `gateway.port` for `port`. */
export function keyElsewhere(key: string): string | undefined {
  const section = keysOf([], undefined).find((name) => keysOf([name], undefined).includes(key));
  return section && `${section}.${key}`;
}

/** The schemas that hold for a place, nearest first. Of an object of several kinds only the one that the whole value says it is; all without it. */
function at(path: Path, whole?: unknown): Schema[] {
  let here = views(root, whole);
  let value = whole;
  for (const step of path) {
    value = (value as Record<string | number, unknown> | null | undefined)?.[step];
    here = here.flatMap((schema) => {
      if (typeof step === "number") return schema.items ? views(schema.items, value) : [];
      const { properties = {}, additionalProperties } = schema;
      if (Object.hasOwn(properties, step)) return views(properties[step] as Schema, value);
      return typeof additionalProperties === "object" ? views(additionalProperties, value) : [];
    });
  }
  return here;
}

/** A schema as it is, then what it refers to, then its choices. */
function views(schema: Schema, value?: unknown): Schema[] {
  const tag = schema.discriminator?.propertyName;
  const kind = tag === undefined ? undefined : (value as Record<string, unknown> | null | undefined)?.[tag];
  const choices = schema.oneOf ?? [];
  const meant =
    kind === undefined || tag === undefined ? [] : choices.filter((choice) => choice.properties?.[tag]?.const === kind);
  return [
    schema,
    ...(schema.$ref === undefined ? [] : views(follow(schema.$ref), value)),
    ...(meant.length > 0 ? meant : choices).flatMap((choice) => views(choice, value)),
  ];
}

function follow(ref: string): Schema {
  const steps = ref.split("/").slice(1);
  return steps.reduce<unknown>((node, step) => (node as Record<string, unknown>)[step], root) as Schema;
}

/** A value as JSON5, on one line. */
function json5(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(json5).join(", ")}]`;
  if (typeof value !== "object" || value === null) return JSON.stringify(value);
  const pairs = Object.entries(value).map(
    ([key, item]) => `${/^[A-Za-z_$][\w$]*$/.test(key) ? key : JSON.stringify(key)}: ${json5(item)}`,
  );
  return pairs.length === 0 ? "{}" : `{ ${pairs.join(", ")} }`;
}
