import { readFileSync } from "node:fs";
import { posix } from "node:path";
import { parse } from "yaml";

// Reads the specs independently of the generator, so that a fault of the generator is found here.

/** A value in a spec, and the file that its references start from. */
export type Node = { file: string; value: unknown };
type Fields = Record<string, unknown>;

const folder = new URL("../../specs/", import.meta.url);
const files = new Map<string, unknown>();

export function isFields(value: unknown): value is Fields {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

export function readSpec(file: string): Node {
  if (!files.has(file)) files.set(file, parse(readFileSync(new URL(file, folder), "utf8")));
  return { file, value: files.get(file) };
}

/** Follows keys, through references; undefined if there is nothing. */
export function get(node: Node | undefined, ...keys: (string | number)[]): Node | undefined {
  let at = node && follow(node);
  for (const key of keys) {
    const { value, file } = at ?? { value: undefined, file: "" };
    if (!(isFields(value) || Array.isArray(value)) || !Object.hasOwn(value, key)) return undefined;
    at = follow({ file, value: (value as Fields)[key] });
  }
  return at;
}

export function text(node: Node | undefined): string {
  return typeof node?.value === "string" ? node.value : "";
}
export function keysOf(node: Node | undefined): string[] {
  return isFields(node?.value) ? Object.keys(node.value) : [];
}
export function entriesOf(node: Node | undefined): Node[] {
  return Array.isArray(node?.value) ? node.value.map((_, index) => get(node, index) as Node) : [];
}

/** Follows a reference and merges its siblings; any other value is unchanged. */
function follow({ file, value }: Node): Node {
  if (!isFields(value) || typeof value.$ref !== "string") return { file, value };
  const { $ref, ...beside } = value;
  const [path = "", pointer = ""] = String($ref).split("#");
  const keys = pointer.split("/").slice(1);
  const start = readSpec(path === "" ? file : posix.join(posix.dirname(file), path));
  const target = get(start, ...keys.map((key) => key.replaceAll("~1", "/").replaceAll("~0", "~")));
  if (target === undefined) throw new Error(`specs/${file}: nothing is at ${$ref}`);
  // The siblings of a reference to another file are descriptions and defaults, so they may move there.
  return Object.keys(beside).length > 0
    ? { file: target.file, value: { ...(target.value as Fields), ...beside } }
    : target;
}

/** A schema without references, for a validator. */
export function whole(node: Node, within: unknown[] = []): unknown {
  const { file, value } = follow(node);
  if (within.includes(value)) throw new Error(`specs/${file}: a shape holds itself`);
  const inside = [...within, value];
  if (Array.isArray(value)) return value.map((item) => whole({ file, value: item }, inside));
  if (!isFields(value)) return value;
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, whole({ file, value: item }, inside)]));
}

/** The field of an object schema, also of a choice of several. */
export function fieldOf(schema: Node | undefined, name: string): Node | undefined {
  const own = get(schema, "properties", name);
  if (own !== undefined || schema === undefined) return own;
  const choices = [...entriesOf(get(schema, "oneOf")), ...entriesOf(get(schema, "anyOf"))];
  return choices.map((choice) => fieldOf(choice, name)).find((field) => field !== undefined);
}

/** Every JSON type that a schema accepts. */
export function typesOf(schema: Node | undefined): string[] {
  const choices = [...entriesOf(get(schema, "oneOf")), ...entriesOf(get(schema, "anyOf"))];
  const own = get(schema, "type")?.value;
  return [...(Array.isArray(own) ? own : [own]), ...choices.flatMap(typesOf)].filter(
    (type) => typeof type === "string",
  );
}

/** The schema of the entries of a list, also in a choice of several. */
export function itemsOf(schema: Node | undefined): Node | undefined {
  const choices = [...entriesOf(get(schema, "oneOf")), ...entriesOf(get(schema, "anyOf"))];
  return get(schema, "items") ?? choices.map(itemsOf).find((items) => items !== undefined);
}
