import type { Chunk } from "./backend.ts";

/**
 * Says that nobody told what a turn used. What is counted then is nothing, as a count of ours would know nothing of what an agent keeps, asks and
 * is told; or, of what runs here, an estimate.
 */
export const untold = (who: string, counted: "nothing" | "an estimate" = "nothing"): Chunk => {
  const reason = `${who} does not tell what it used`;
  return { note: { name: "usage.unknown", detail: counted === "nothing" ? { reason } : { reason, estimated: true } } };
};
