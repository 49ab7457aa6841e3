/** The content of a YAML or JSON file. */
export type Json = null | boolean | number | string | Json[] | JsonObject;
export type JsonObject = { [key: string]: Json };

export function isObject(value: unknown): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** The value as an object; a missing one is empty. */
export function object(value: Json | undefined): JsonObject {
  return isObject(value) ? value : {};
}
export function list(value: Json | undefined): Json[] {
  return Array.isArray(value) ? value : [];
}
export function text(value: Json | undefined): string {
  return typeof value === "string" ? value : "";
}
export function texts(value: Json | undefined): string[] {
  return list(value).map(text);
}

export function mapValues<From, To>(from: Record<string, From>, change: (value: From, key: string) => To) {
  return Object.fromEntries(Object.entries(from).map(([key, value]) => [key, change(value, key)])) as Record<
    string,
    To
  >;
}

export function sortKeys<Value>(from: Record<string, Value>): Record<string, Value> {
  return Object.fromEntries(Object.entries(from).sort(([a], [b]) => (a < b ? -1 : 1)));
}

/** A literal for generated TypeScript. */
export function literal(value: unknown): string {
  return JSON.stringify(value) ?? "undefined";
}
/** The same in the place of a property's name. */
export function key(name: string): string {
  return /^[A-Za-z_$][\w$]*$/.test(name) ? name : literal(name);
}
