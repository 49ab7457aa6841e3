import { type ErrorName, GatewayError } from "#kit/errors.ts";
import type { Records } from "./records.ts";

const BUSY_HINT_MS = 1_000;
/** Refusals that go by, so that the caller may try again. */
const PASSING: ReadonlySet<ErrorName> = new Set<ErrorName>(["session-busy", "gateway-busy", "store-full"]);

export const refuse = (name: ErrorName, detail: string): GatewayError =>
  new GatewayError(name, detail, PASSING.has(name) ? { retryAfterMs: BUSY_HINT_MS } : {});

/** The bytes that count for `limits.storeBytes`. The recorder adds only the part past its own limit, whose work is unfinished. */
export const bytesForLimit = ({ totals, bookmarks, deliveries }: Records): number =>
  totals.bytes + Math.max(0, deliveries.shelf(false).bytes - bookmarks.recorderBytes);

/** Refuses a write when the store is full. */
export const checkBytes = (records: Records, storeBytes: number): void => {
  const bytes = bytesForLimit(records);
  if (bytes >= storeBytes) throw refuse("store-full", `The store holds ${bytes} bytes, limits.storeBytes.`);
};
