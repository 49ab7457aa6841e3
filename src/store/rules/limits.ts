import { type ErrorName, GatewayError } from "#kit/errors.ts";
import type { Records } from "./records.ts";

const BUSY_HINT_MS = 1_000;
/** Refusals that go by, so that the caller may try again. */
const PASSING: ReadonlySet<ErrorName> = new Set<ErrorName>([
  "session-busy",
  "share-busy",
  "gateway-busy",
  "store-full",
]);

export function refuse(name: ErrorName, detail: string): GatewayError {
  return new GatewayError(name, detail, PASSING.has(name) ? { retryAfterMs: BUSY_HINT_MS } : {});
}

/** Refuses a write when the store is full. The recorder's bytes count only past its own limit, when its work is unfinished. */
export function checkBytes({ totals, bookmarks, deliveries }: Records, storeBytes: number): void {
  const unfinished = Math.max(0, deliveries.shelf(false).bytes - bookmarks.recorderBytes);
  const bytes = totals.bytes + unfinished;
  if (bytes >= storeBytes)
    throw refuse(
      "store-full",
      `limits.storeBytes is reached: the store holds ${bytes} bytes. Delete sessions, or raise the limit.`,
    );
}
