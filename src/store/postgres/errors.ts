import { GatewayError } from "#kit/errors.ts";

/** The kind of failure of a call to the database. The next step depends on it. */
type Failure =
  /** The connection broke. It is unknown whether the call was committed. */
  | "lost"
  /** Nothing was committed. A retry may succeed at once. */
  | "clash"
  /** The server accepts no writes or no connections. Another server, or a later retry, may succeed. */
  | "refused"
  /** A prepared plan of the connection is from before a change of the schema, so a new connection is needed. Nothing was committed. */
  | "outdated"
  /** A retry will fail again. */
  | "broken";

const RETRY_MS = 1_000;

/** The SQLSTATEs that describe the server rather than the statement. */
const REFUSED = /^(53|57P03|25006|58)/;
const OUTDATED = "0A000";
/** The server closed the connection, possibly after it had committed the call. */
const LOST = /^(08|57P0[12])/;
const CLASH = /^(40001|40P01|55P03|25P03)$/;

export function failureOf(error: unknown): Failure {
  // These are errors of this process, such as that of a text that is too long.
  if (error instanceof RangeError || error instanceof TypeError || error instanceof SyntaxError) return "broken";
  const code = (error as { code?: unknown } | undefined)?.code;
  if (typeof code !== "string" || !/^[0-9A-Z]{5}$/.test(code)) return "lost";
  if (LOST.test(code)) return "lost";
  if (code === OUTDATED) return "outdated";
  if (CLASH.test(code)) return "clash";
  return REFUSED.test(code) || code === "57014" ? "refused" : "broken";
}

export function unavailable(why: string, cause?: unknown): GatewayError {
  return new GatewayError("store-unavailable", why, { retryAfterMs: RETRY_MS, cause });
}
