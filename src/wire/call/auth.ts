import type { IncomingMessage } from "node:http";
import type { Clock } from "#kit/clock.ts";
import { GatewayError } from "#kit/errors.ts";
import { hashOf } from "#kit/secrets.ts";

/** The token of an Authorization header; undefined when there is none of the form `Bearer <token>`. */
export const bearerOf = (req: IncomingMessage): string | undefined => {
  const header = req.headers.authorization;
  if (header === undefined || header.length < 8 || header.slice(0, 7).toLowerCase() !== "bearer ") return undefined;
  return header.slice(7).trim() || undefined;
};

const SENT = Symbol("sent");
const SENT_APART = Symbol("sent apart");
type Sent = { header: string; hash: Buffer };
type Remembering = { [SENT]?: Sent; [SENT_APART]?: Sent };

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

/** The hash of the token in `x-gateway-token`, where a proxy has a use of its own for Authorization. Remembered likewise. */
export const gatewayTokenHashOf = ({ headers, socket }: IncomingMessage): Buffer | undefined => {
  const header = headers["x-gateway-token"] as string | undefined;
  if (!header) return undefined;
  const own = socket as Remembering;
  if (own[SENT_APART]?.header !== header) own[SENT_APART] = { header, hash: hashOf(header) };
  return own[SENT_APART].hash;
};

const WINDOW_MS = 60_000;
const FREE_FAILURES = 20;
const NETWORKS = 10_000;

/** Where people put a token that is not looked for there. */
const ELSEWHERE = ["x-api-key", "api-key", "apikey", "x-auth-token", "x-access-token", "x-token", "x-gateway-token"];

/**
 * Says which token a door takes. A missing and a wrong token get the same words. If the request has a header that this kind of door does not
 * read, its name is added.
 */
export const adviceOf = (takes: string, { headers }: IncomingMessage): string => {
  const other = ELSEWHERE.find((name) => headers[name] !== undefined && !takes.includes(name));
  return other === undefined ? takes : `${takes} You sent \`${other}\`, which is not looked at here.`;
};

/** Counts failed authentications by network. Past 20 a minute an answer asks to wait and closes; a good token still passes. */
export const createGuessGuard = (clock: Clock) => {
  const failures = new Map<string, { since: number; count: number }>();
  return (network: string, advice: string): { error: GatewayError; guessing: boolean } => {
    const now = clock.monotonic();
    let failed = failures.get(network);
    if (!failed || now - failed.since >= WINDOW_MS) {
      failures.delete(network);
      if (failures.size >= NETWORKS) failures.delete(failures.keys().next().value as string);
      failed = { since: now, count: 0 };
      failures.set(network, failed);
    }
    failed.count++;
    const guessing = failed.count > FREE_FAILURES;
    const retryAfterMs = guessing ? failed.since + WINDOW_MS - now : undefined;
    const extra = retryAfterMs === undefined ? {} : { retryAfterMs };
    return { error: new GatewayError("unauthenticated", advice, extra), guessing };
  };
};

export type GuessGuard = ReturnType<typeof createGuessGuard>;
