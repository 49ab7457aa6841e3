import { isObject, type Json, type JsonObject, list, object, text, texts } from "../generate/json.ts";
import { shapeOf } from "../generate/schema.ts";

/** A change of the contract. A breaking one must wait for the next major version. */
export type Change = { breaks: boolean; who: string; where: string; what: string };
export type Report = (breaks: boolean, where: string, what: string) => void;

/** `request`: callers send it. `reply`: they read it. */
export type Direction = "request" | "reply";
export type Side = { schema: Json | undefined; shapes: JsonObject };

/** Reports the effect of a schema's change on those who send or read its values. A new name of a shape is not a change. */
export function compareSchemas(before: Side, after: Side, direction: Direction, where: string, report: Report): void {
  compare(before, after, direction, where, report, new Set());
}

function compare(
  before: Side,
  after: Side,
  direction: Direction,
  where: string,
  report: Report,
  seen: Set<string>,
): void {
  const names = [shapeOf(before.schema), shapeOf(after.schema)];
  if (names[0] !== undefined && names[1] !== undefined) {
    const pair = names.join(" ");
    if (seen.has(pair)) return;
    seen = new Set([...seen, pair]);
  }
  const [old, now] = [variantsOf(before), variantsOf(after)];
  for (const [key, variant] of old) {
    const other = now.get(key);
    if (other !== undefined)
      compareVariants(key, [variant, before.shapes], [other, after.shapes], direction, where, report, seen);
    else if (direction === "request") report(true, where, `${wordOf(key)} is no longer accepted`);
    else report(false, where, `${wordOf(key)} is no longer returned`);
  }
  for (const key of now.keys()) {
    if (old.has(key)) continue;
    if (direction === "reply") report(true, where, `it may be ${wordOf(key)} now`);
    else report(false, where, `${wordOf(key)} is also accepted`);
  }
}

/** The values of one kind that a schema allows. If `values` is set, no others are allowed. */
type Variant = { schemas: JsonObject[]; values: Set<string> | undefined };

/** The kinds of values that a schema allows, by type. Objects are also distinguished by their constants. */
function variantsOf({ schema, shapes }: Side): Map<string, Variant> {
  const found = new Map<string, Variant>();
  const add = (key: string, one: JsonObject, values: Json[] | undefined): void => {
    const known = found.get(key);
    const set = values && new Set(values.map((value) => JSON.stringify(value)));
    if (known === undefined) found.set(key, { schemas: [one], values: set });
    else
      found.set(key, {
        schemas: [...known.schemas, one],
        values: known.values && set && new Set([...known.values, ...set]),
      });
  };
  const visit = (node: Json | undefined): unknown => {
    const name = shapeOf(node);
    if (name !== undefined) return visit(shapes[name]);
    if (!isObject(node)) return add("anything", {}, undefined);
    const either = list(node.oneOf ?? node.anyOf);
    if (either.length > 0) return either.forEach(visit);
    const values = node.const !== undefined ? [node.const] : node.enum !== undefined ? list(node.enum) : undefined;
    const types = Array.isArray(node.type) ? texts(node.type) : [text(node.type) || typesOf(values)];
    for (const type of types)
      add(type === "object" ? objectKey(node, shapes) : type === "integer" ? "number" : type, node, values);
    return undefined;
  };
  visit(schema);
  return found;
}

function typesOf(values: Json[] | undefined): string {
  return values === undefined ? "anything" : typeof values[0];
}

/** `object`, with the constants of its fields if it has any: `object event="turn.started"`. */
function objectKey(schema: JsonObject, shapes: JsonObject): string {
  const constants = Object.entries(object(schema.properties)).flatMap(([name, property]) => {
    const shape = shapeOf(property);
    const { const: only } = object(shape === undefined ? property : shapes[shape]);
    return only === undefined ? [] : [` ${name}=${JSON.stringify(only)}`];
  });
  return `object${constants.join("")}`;
}

function wordOf(key: string): string {
  return key === "null"
    ? "null"
    : key.startsWith("object")
      ? `an ${key}`
      : key === "array"
        ? "a list"
        : key === "anything"
          ? "anything"
          : `a ${key}`;
}

type Sided = [variant: Variant, shapes: JsonObject];

function compareVariants(
  key: string,
  old: Sided,
  now: Sided,
  direction: Direction,
  where: string,
  report: Report,
  seen: Set<string>,
): void {
  const [before, after] = [old[0], now[0]];
  compareValues(before.values, after.values, direction, where, report);
  if (before.schemas.length > 1 || after.schemas.length > 1) {
    if (key.startsWith("object")) compareNearest(old, now, direction, where, report, seen);
    return;
  }
  const [one, other] = [before.schemas[0] as JsonObject, after.schemas[0] as JsonObject];
  if (direction === "request") compareLimits(one, other, where, report);
  if (key === "number" && one.type !== other.type) {
    if (direction === "reply" && other.type === "number") report(true, where, "it may have a fraction now");
    if (direction === "request" && other.type === "integer") report(true, where, "a fraction is no longer accepted");
  }
  if (key === "array")
    compare(
      { schema: one.items, shapes: old[1] },
      { schema: other.items, shapes: now[1] },
      direction,
      `${where}[]`,
      report,
      seen,
    );
  if (key.startsWith("object")) compareObjects([one, old[1]], [other, now[1]], direction, where, report, seen);
}

/** Compares several objects that no constant tells apart: each old one with the new one that differs least. */
function compareNearest(
  [before, oldShapes]: Sided,
  [after, newShapes]: Sided,
  direction: Direction,
  where: string,
  report: Report,
  seen: Set<string>,
): void {
  for (const one of before.schemas) {
    const [nearest = []] = after.schemas
      .map((other) => {
        const changes: Parameters<Report>[] = [];
        const note: Report = (...change) => changes.push(change);
        compareObjects([one, oldShapes], [other, newShapes], direction, where, note, seen);
        return changes;
      })
      .sort((a, b) => breaksIn(a) - breaksIn(b) || a.length - b.length);
    for (const change of nearest) report(...change);
  }
}

function breaksIn(changes: readonly Parameters<Report>[]): number {
  return changes.filter(([breaks]) => breaks).length;
}

function compareValues(
  before: Variant["values"],
  after: Variant["values"],
  direction: Direction,
  where: string,
  report: Report,
): void {
  for (const value of before ?? []) {
    if (after === undefined || after.has(value)) continue;
    report(true, where, direction === "request" ? `${value} is no longer accepted` : `the value ${value} was removed`);
  }
  if (before === undefined && after !== undefined && direction === "request")
    report(true, where, `it takes only ${[...after].join(", ")} now`);
  if (before === undefined) return;
  if (after === undefined) report(false, where, "it may be any value now");
  for (const value of after ?? []) if (!before.has(value)) report(false, where, `the value ${value} is new`);
}

const LIMITS: [name: string, tighter: (before: number, after: number) => boolean, least: boolean][] = [
  ...["minimum", "minLength", "minItems", "minProperties"].map((name): (typeof LIMITS)[number] => [
    name,
    (before, after) => after > before,
    true,
  ]),
  ...["maximum", "maxLength", "maxItems", "maxProperties"].map((name): (typeof LIMITS)[number] => [
    name,
    (before, after) => after < before,
    false,
  ]),
];

function compareLimits(before: JsonObject, after: JsonObject, where: string, report: Report): void {
  for (const [name, tighter, least] of LIMITS) {
    if (after[name] === undefined) continue;
    const old =
      before[name] === undefined ? (least ? Number.NEGATIVE_INFINITY : Number.POSITIVE_INFINITY) : Number(before[name]);
    if (tighter(old, Number(after[name])))
      report(true, where, `its ${name} is ${after[name]} now${Number.isFinite(old) ? `, and was ${old}` : ""}`);
  }
  for (const name of ["pattern", "format"])
    if (after[name] !== undefined && after[name] !== before[name])
      report(true, where, `its ${name} is ${JSON.stringify(after[name])} now`);
}

type SidedSchema = [schema: JsonObject, shapes: JsonObject];

function compareObjects(
  old: SidedSchema,
  now: SidedSchema,
  direction: Direction,
  where: string,
  report: Report,
  seen: Set<string>,
): void {
  const [[before, oldShapes], [after, newShapes]] = [old, now];
  const [was, is] = [object(before.properties), object(after.properties)];
  const [needed, needs] = [texts(before.required), texts(after.required)];
  const at = (name: string) => (where === "" ? name : `${where}.${name}`);
  for (const [name, property] of Object.entries(was)) {
    if (is[name] !== undefined) {
      compare(
        { schema: property, shapes: oldShapes },
        { schema: is[name], shapes: newShapes },
        direction,
        at(name),
        report,
        seen,
      );
      if (direction === "reply" && needed.includes(name) && !needs.includes(name))
        report(true, at(name), "it may be missing now");
      if (direction === "request" && !needed.includes(name) && needs.includes(name))
        report(true, at(name), "it must be sent now");
    } else if (direction === "reply") report(true, at(name), "the field was removed");
    else report(after.additionalProperties === false, at(name), "the field is refused now");
  }
  for (const name of Object.keys(is)) {
    if (was[name] !== undefined) continue;
    if (direction === "request" && needs.includes(name)) report(true, at(name), "it is new and must be sent");
    else report(false, at(name), "the field is new");
  }
  if (direction === "request" && before.additionalProperties !== false && after.additionalProperties === false)
    report(true, where, "fields that it does not name are refused now");
  if (isObject(before.additionalProperties) && isObject(after.additionalProperties))
    compare(
      { schema: before.additionalProperties, shapes: oldShapes },
      { schema: after.additionalProperties, shapes: newShapes },
      direction,
      `${where}.*`,
      report,
      seen,
    );
}
