import { GatewayError } from "#kit/errors.ts";

/** The way in which a call to the database failed; it decides the next step. */
type Failure =
  /** The connection is gone: it is unknown whether the call was kept. */
  | "lost"
  /** Nothing was kept, and the same call may do better at once. */
  | "clash"
  /** The server takes no writes or no connections: another one, or a later time. */
  | "refused"
  /** It will not work however often it is tried. */
  | "broken";

const RETRY_MS = 1_000;

/** The SQLSTATEs that describe the server rather than the statement. */
const REFUSED = /^(53|57P03|25006|58)/;
/** The connection was ended from there: a call that was on its way may have been kept before. A plan of it may be out of date, too. */
const LOST = /^(08|57P0[12]|0A000)/;
const CLASH = /^(40001|40P01|55P03|25P03)$/;

export function failureOf(error: unknown): Failure {
  const code = (error as { code?: unknown } | undefined)?.code;
  if (typeof code !== "string" || !/^[0-9A-Z]{5}$/.test(code)) return "lost";
  if (LOST.test(code)) return "lost";
  if (CLASH.test(code)) return "clash";
  return REFUSED.test(code) || code === "57014" ? "refused" : "broken";
}

export function unavailable(why: string, cause?: unknown): GatewayError {
  return new GatewayError("store-unavailable", why, { retryAfterMs: RETRY_MS, cause });
}
