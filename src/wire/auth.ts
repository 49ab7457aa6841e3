import type { IncomingMessage } from "node:http";
import type { Clock } from "#core/clock.ts";
import { GatewayError } from "#core/errors.ts";
import { hashOf } from "#core/secrets.ts";

/** The token of an Authorization header; undefined when there is none of the form `Bearer <token>`. */
export const bearerOf = (req: IncomingMessage): string | undefined => {
  const header = req.headers.authorization;
  if (header === undefined || header.length < 8 || header.slice(0, 7).toLowerCase() !== "bearer ") return undefined;
  return header.slice(7).trim() || undefined;
};

const SENT = Symbol("sent");
type Remembering = { [SENT]?: { header: string; hash: Buffer } };

/**
 * The hash of the token that a request carries; undefined when it carries none. A connection sends the same token again and again: its
 * hash is remembered with it, so that a client is compared with nothing but what it sent itself.
 */
export const tokenHashOf = (req: IncomingMessage): Buffer | undefined => {
  const { authorization: header } = req.headers;
  const socket = req.socket as Remembering;
  const sent = socket[SENT];
  if (sent !== undefined && sent.header === header) return sent.hash;
  const token = bearerOf(req);
  if (token === undefined || header === undefined) return undefined;
  const hash = hashOf(token);
  socket[SENT] = { header, hash };
  return hash;
};

const WINDOW_MS = 60_000;
const FREE_FAILURES = 20;
const ADDRESSES = 10_000;

/** Counts failed authentications by address. Past 20 a minute an answer asks to wait and closes; a good token still passes. */
export const createGuessGuard = (clock: Clock) => {
  const failures = new Map<string, { since: number; count: number }>();
  return (address: string): { error: GatewayError; guessing: boolean } => {
    const now = clock.monotonic();
    let failed = failures.get(address);
    if (!failed || now - failed.since >= WINDOW_MS) {
      failures.delete(address);
      if (failures.size >= ADDRESSES) failures.delete(failures.keys().next().value as string);
      failed = { since: now, count: 0 };
      failures.set(address, failed);
    }
    failed.count++;
    const guessing = failed.count > FREE_FAILURES;
    const retryAfterMs = guessing ? failed.since + WINDOW_MS - now : undefined;
    const extra = retryAfterMs === undefined ? {} : { retryAfterMs };
    return { error: new GatewayError("unauthenticated", "Send Authorization: Bearer <token>.", extra), guessing };
  };
};

export type GuessGuard = ReturnType<typeof createGuessGuard>;
