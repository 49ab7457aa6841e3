/** The content of a YAML or JSON file. */
export type Json = null | boolean | number | string | Json[] | JsonObject;
export type JsonObject = { [key: string]: Json };

export const isObject = (value: unknown): value is JsonObject =>
  typeof value === "object" && value !== null && !Array.isArray(value);

/** The value as an object; an absent one is empty. */
export const object = (value: Json | undefined): JsonObject => (isObject(value) ? value : {});
export const list = (value: Json | undefined): Json[] => (Array.isArray(value) ? value : []);
export const text = (value: Json | undefined): string => (typeof value === "string" ? value : "");
export const texts = (value: Json | undefined): string[] => list(value).map(text);

export const mapValues = <From, To>(from: Record<string, From>, change: (value: From, key: string) => To) =>
  Object.fromEntries(Object.entries(from).map(([key, value]) => [key, change(value, key)])) as Record<string, To>;

export const sortKeys = <Value>(from: Record<string, Value>): Record<string, Value> =>
  Object.fromEntries(Object.entries(from).sort(([a], [b]) => (a < b ? -1 : 1)));

/** A literal for generated TypeScript. */
export const literal = (value: unknown): string => JSON.stringify(value) ?? "undefined";
/** The same where a property's name stands. */
export const key = (name: string): string => (/^[A-Za-z_$][\w$]*$/.test(name) ? name : literal(name));
