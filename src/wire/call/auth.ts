import type { IncomingMessage } from "node:http";
import type { Socket } from "node:net";
import type { Clock } from "#kit/clock.ts";
import { GatewayError } from "#kit/errors.ts";
import { hashOf } from "#kit/secrets.ts";

/** The token of an Authorization header; undefined when there is none of the form `Bearer <token>`. */
export const bearerOf = (req: IncomingMessage): string | undefined => {
  const header = req.headers.authorization;
  if (header === undefined || header.length < 8 || header.slice(0, 7).toLowerCase() !== "bearer ") return undefined;
  return header.slice(7).trim() || undefined;
};

type Hashed = { token: string; hash: Buffer };

/**
 * The hashes of the tokens that connections sent last, in `authorization` and in `x-gateway-token`. A connection sends the same token again
 * and again; a client is compared with nothing but its own.
 */
const bearers = new WeakMap<Socket, Hashed>();
const gatewayTokens = new WeakMap<Socket, Hashed>();

const hashOnce = (hashed: WeakMap<Socket, Hashed>, socket: Socket, token: string): Buffer => {
  const last = hashed.get(socket);
  if (last?.token === token) return last.hash;
  const hash = hashOf(token);
  hashed.set(socket, { token, hash });
  return hash;
};

/** The hash of the token that a request carries; undefined when it carries none. */
export const tokenHashOf = (req: IncomingMessage): Buffer | undefined => {
  const token = bearerOf(req);
  return token === undefined ? undefined : hashOnce(bearers, req.socket, token);
};

/** The hash of the token in `x-gateway-token`, where a proxy has a use of its own for Authorization. */
export const gatewayTokenHashOf = ({ headers, socket }: IncomingMessage): Buffer | undefined => {
  const token = headers["x-gateway-token"] as string | undefined;
  return token ? hashOnce(gatewayTokens, socket, token) : undefined;
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
