import type { Config as CheckedConfig } from "#generated/config-types.ts";
import { config as conforms } from "#generated/validators/config.js";
import type { Fault, Path } from "./problems.ts";

export type { CheckedConfig };

/** One fault that a validator found, as far as it is used here. */
export type SchemaError = {
  instancePath: string;
  keyword: string;
  params: Record<string, unknown>;
  propertyName?: string;
  message?: string;
};

/** Holds a configuration to its schema and fills in the defaults, in place. `written` is the same before its references were filled in. */
export async function conform(value: unknown, written: unknown): Promise<{ checked: CheckedConfig; faults: Fault[] }> {
  if (conforms(value)) return { checked: value as CheckedConfig, faults: [] };
  // Only a mistake needs the words for it, and the schema that they are taken from.
  const { explain } = await import("./explain.ts");
  const faults = explain((conforms.errors ?? []) as SchemaError[], value, written);
  return { checked: value as CheckedConfig, faults };
}

/** The path of a JSON Pointer; steps into a list are numbers. */
export function pathOf(pointer: string, root: unknown): Path {
  let node = root;
  return pointer
    .split("/")
    .slice(1)
    .map((word) => {
      const key = word.replaceAll("~1", "/").replaceAll("~0", "~");
      const step = Array.isArray(node) ? Number(key) : key;
      node = (node as Record<string | number, unknown> | null | undefined)?.[step];
      return step;
    });
}
