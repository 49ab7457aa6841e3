import { setImmediate } from "node:timers/promises";

/** Resolves in the next turn of the event loop: other calls run in between. */
export function yieldToOthers(): Promise<void> {
  return setImmediate();
}
