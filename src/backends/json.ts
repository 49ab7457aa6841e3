import { BackendError } from "#kit/errors.ts";
import { ANSWER_LIMITS, limitPassed } from "#kit/json-limits.ts";

export function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null;
}

/** The value of a JSON text from an agent or a model; undefined if it is not JSON. Throws a BackendError if it exceeds `ANSWER_LIMITS`. */
export function jsonOf(text: string): unknown {
  const passed = limitPassed(text, ANSWER_LIMITS);
  if (passed !== undefined) throw new BackendError(`the agent's answer ${passed}`);
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
