import { _, stringify } from "ajv";
import { Ajv2020 } from "ajv/dist/2020.js";
import standalone from "ajv/dist/standalone/index.js";
import type { KeywordErrorCxt } from "ajv/dist/types/index.js";
import { type JsonObject, key, literal, object } from "./json.ts";
import { mapSchema, type Schema, schemasIn, shapeOf, shapesWith } from "./schema.ts";
import { SpecError } from "./spec-files.ts";

/** The value that is exported under one name: a validator, or a record of them. */
export type Export = { name: string; about: string; schemas: Record<string, Schema> | Schema; single?: true };

/** Exports that are compiled together. */
export type Part = {
  exports: Export[];
  /** Fills in defaults, in place. */
  defaults: boolean;
  /** Reports every fault, not only the first. */
  all: boolean;
  /** A fault for an unknown field lists the known fields as `known`. */
  known?: true;
};

/** These keywords check nothing. A `default` does, if defaults are filled in. */
const annotations = [
  "$comment",
  "title",
  "description",
  "example",
  "examples",
  "deprecated",
  "readOnly",
  "writeOnly",
  "contentSchema",
  "patternErrorMessage",
];

/** The files next to the validators, and what is imported from them. */
const BESIDE = { equal: ["equal"], join: ["join"], lengths: ["isLonger", "isShorter"] };

/** Compiles validators into one module that imports only the files next to it. */
export function printValidators(header: string, shapes: JsonObject, parts: Part[]): { js: string; dts: string } {
  const chunks = parts.map((part) => printPart(shapes, part));
  const code = chunks.join("\n\n");
  const imports = Object.entries(BESIDE).flatMap(([file, names]) => {
    const used = names.filter((name) => new RegExp(`\\b${name}\\b(?=[(;])`).test(code));
    return used.length === 0 ? [] : [`import { ${used.join(", ")} } from "./${file}.js";`];
  });
  const js = [header, ...imports, "", code, ""].join("\n");
  const declarations = parts.flatMap(({ exports }) =>
    exports.map(({ name, about, schemas, single }) => {
      const names = Object.keys(single ? {} : (schemas as Record<string, Schema>)).map(
        (entry) => `\n  | ${literal(entry)}`,
      );
      const type = single ? "Validate" : `Readonly<Record<${names.join("") || "never"},\n  Validate\n>>`;
      return `/** ${about} */\nexport declare const ${name}: ${type};`;
    }),
  );
  const dts = [header, `import type { Validate } from "./validate.ts";`, "", ...declarations, ""].join("\n");
  return { js, dts };
}

/** One Ajv with its output, inside a separate function so that the names of two parts cannot clash. */
function printPart(shapes: JsonObject, { exports, defaults, all, known }: Part): string {
  const ajv = new Ajv2020({
    strict: true,
    strictRequired: false, // A member of an `allOf` may require what another one defines.
    allowUnionTypes: true,
    discriminator: true,
    validateFormats: false, // `format` is documentation: what is right is said by `pattern`.
    useDefaults: defaults,
    allErrors: all,
    code: { source: true, esm: true, lines: true },
  });
  if (known) nameKnown(ajv);
  if (defaults) refuseDefaultsInChoices(shapes);
  for (const [name, shape] of Object.entries(shapes)) ajv.addSchema(forAjv(shape as Schema, true), idOf(name));

  const locals: Record<string, string> = {};
  const records = exports.map(({ name, schemas, single }) => {
    const entries = Object.entries(single ? { "": schemas as Schema } : (schemas as Record<string, Schema>));
    const lines = entries.map(([entry, schema]) => {
      const shape = shapeOf(schema);
      // A bare reference is the validator of the shape.
      const id =
        shape !== undefined && Object.keys(object(schema as JsonObject)).length === 1
          ? idOf(shape)
          : `${name} ${entry}`;
      if (id !== idOf(shape ?? "")) ajv.addSchema(forAjv(schema, false), id);
      compile(ajv, id);
      // Ajv writes a validator once for each requested name, so each is requested under one name.
      locals[id] ??= `x${Object.keys(locals).length}`;
      const local = locals[id];
      return single ? local : `    ${key(entry)}: ${local},`;
    });
    return single
      ? `    ${name}: ${lines[0]},`
      : `    ${name}: {\n${lines.map((line) => `  ${line}`).join("\n")}\n    },`;
  });
  const written = standalone(ajv, Object.fromEntries(Object.entries(locals).map(([id, local]) => [local, id])));
  const code = withoutRequire(quick(written))
    .replace(/^"use strict";\n?/, "")
    .replace(/^export const (x\d+) = /gm, "const $1 = ");
  const names = exports.map(({ name }) => name).join(", ");
  return `export const { ${names} } = /* @__PURE__ */ (() => {\n${code}\n  return {\n${records.join("\n")}\n  };\n})();`;
}

/** Ajv names the unknown field; this adds the known ones. */
function nameKnown(ajv: Ajv2020): void {
  const rule = ajv.getKeyword("additionalProperties");
  if (typeof rule === "boolean") throw new Error("Ajv has no additionalProperties");
  const params = ({ params, parentSchema }: KeywordErrorCxt) =>
    _`{additionalProperty: ${params.additionalProperty}, known: ${stringify(Object.keys(object(parentSchema?.properties)))}}`;
  rule.error = { ...rule.error, message: "must NOT have additional properties", params };
}

function idOf(shape: string): string {
  return `shape:${shape}`;
}

function compile(ajv: Ajv2020, id: string): void {
  try {
    ajv.getSchema(id);
  } catch (error) {
    throw new SpecError(`specs, ${id}`, error instanceof Error ? error.message : String(error));
  }
}

/** The schema for Ajv: references by its ids, without the keywords that only people and other tools read. */
function forAjv(schema: Schema, isShape: boolean): Schema {
  const seen = mapSchema(schema, (inner) => {
    const { discriminator, ...rest } = inner;
    const shape = shapeOf(rest);
    const result: JsonObject = shape === undefined ? rest : { ...rest, $ref: idOf(shape) };
    for (const word of annotations) delete result[word];
    if (discriminator !== undefined) result.discriminator = { propertyName: object(discriminator).propertyName ?? "" };
    return result;
  }) as Schema;
  if (!isShape || typeof seen === "boolean") return seen;
  const { default: _, ...rest } = seen; // It applies where the shape is used, and is written there.
  return rest;
}

/** A member of a choice that does not match may already have filled in its defaults. */
function refuseDefaultsInChoices(shapes: JsonObject): void {
  const holdsDefault = (schema: JsonObject) =>
    Object.values(object(schema.properties)).some((p) => "default" in object(p));
  const filled = shapesWith(shapes, holdsDefault);
  for (const [name, shape] of Object.entries(shapes)) {
    for (const { oneOf, anyOf, discriminator } of schemasIn(shape)) {
      if (discriminator !== undefined) continue;
      for (const member of [oneOf, anyOf].flatMap((members) => (Array.isArray(members) ? members : []))) {
        const fault = [...schemasIn(member)].some((inner) => holdsDefault(inner) || filled.has(shapeOf(inner) ?? ""));
        if (fault)
          throw new SpecError(`the shape ${name}`, "a choice with defaults in its members needs a discriminator");
      }
    }
  }
}

/**
 * Ajv counts the characters of each text completely, even for a short limit, and copies the faults found so far for each part with further ones: a
 * body of a megabyte would block everyone.
 */
function quick(code: string): string {
  return code
    .replace(/^const func\d+ = require\("ajv\/dist\/runtime\/ucs2length"\)\.default;\n/gm, "")
    .replace(/\bfunc\d+\((\w+)\) ([<>]) (\d+)/g, (_all, text, sign, limit) =>
      sign === ">" ? `isLonger(${text}, ${limit})` : `isShorter(${text}, ${limit})`,
    )
    .replace(/\bvErrors === null \? (\w+\.errors) : vErrors\.concat\(\1\)/g, "join(vErrors, $1)");
}

/** Ajv's standalone code loads its helpers by `require`, even in modules. */
function withoutRequire(code: string): string {
  const result = code.replace(
    /^const (\w+) = require\("ajv\/dist\/runtime\/equal"\)\.default;$/gm,
    "const $1 = equal;",
  );
  const other = /require\([^)]*\)/.exec(result);
  if (other !== null) throw new Error(`the generator has no replacement for ${other[0]} in a validator`);
  return result;
}
