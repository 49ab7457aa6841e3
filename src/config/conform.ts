import type { Config as CheckedConfig } from "#generated/config-types.ts";
import { config as conforms } from "#generated/validators/config.js";
import type { Fault } from "./problems.ts";

export type { CheckedConfig };

/** Holds a configuration to its schema and fills in the defaults, in place. `written` is the same before its references were filled in. */
export async function conform(value: unknown, written: unknown): Promise<{ checked: CheckedConfig; faults: Fault[] }> {
  if (conforms(value)) return { checked: value as CheckedConfig, faults: [] };
  // Only a mistake needs the words for it, and the schema that they are taken from.
  const { explain } = await import("./explain.ts");
  const faults = explain(conforms.errors ?? [], value, written);
  return { checked: value as CheckedConfig, faults };
}
