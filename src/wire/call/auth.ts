import type { IncomingMessage } from "node:http";
import type { Socket } from "node:net";
import type { Clock } from "#kit/clock.ts";
import { GatewayError } from "#kit/errors.ts";
import { hashOf } from "#kit/secrets.ts";
import type { Events } from "#observe/events.ts";
import { type Peer, requireTls } from "./address.ts";
import type { WireCall } from "./call.ts";
import { createTally } from "./rate-limit.ts";

/** The token of an Authorization header; undefined when there is none of the form `Bearer <token>`. */
export const bearerOf = (req: IncomingMessage): string | undefined => {
  const header = req.headers.authorization;
  if (header === undefined || header.length < 8 || header.slice(0, 7).toLowerCase() !== "bearer ") return undefined;
  return header.slice(7).trim() || undefined;
};

/** A connection sends the same token again and again: the hash of its last one is kept with it. */
const hashes = new WeakMap<Socket, { token: string; hash: Buffer }>();

/** The hash of the token that a request carries; undefined when it carries none. */
export const tokenHashOf = (req: IncomingMessage): Buffer | undefined => {
  const token = bearerOf(req);
  if (token === undefined) return undefined;
  const last = hashes.get(req.socket);
  if (last?.token === token) return last.hash;
  const hash = hashOf(token);
  hashes.set(req.socket, { token, hash });
  return hash;
};

/** The hash of the token in `x-gateway-token`, for use behind a proxy that needs Authorization for itself. */
export const gatewayTokenHashOf = ({ headers }: IncomingMessage): Buffer | undefined => {
  const token = headers["x-gateway-token"] as string | undefined;
  return token ? hashOf(token) : undefined;
};

const WINDOW_MS = 60_000;
const FREE_FAILURES = 20;

/** Headers in which people put a token, and which not every door reads. */
const ELSEWHERE = ["x-api-key", "api-key", "apikey", "x-auth-token", "x-access-token", "x-token", "x-gateway-token"];

/**
 * Says which token a door takes. A missing and a wrong token get the same words. If the request has a header that this kind of door does not
 * read, its name is added.
 */
export const adviceOf = (takes: string, { headers }: IncomingMessage): string => {
  const other = ELSEWHERE.find((name) => headers[name] !== undefined && !takes.includes(name));
  return other === undefined ? takes : `${takes} You sent \`${other}\`, which is not looked at here.`;
};

/** A request without a good token, and the place that it asked for. The place is told in the contract's words alone. */
type Stranger = {
  surface: "rest" | "rpc" | "hooks" | "public";
  peer: Peer;
  path: string;
  requestId: string;
  mapping?: string | undefined;
  /** Takes no further request on its connection. */
  endConnection?: () => void;
};

/**
 * Counts failed authentications by network, logs them, and makes the refusal. Past 20 a minute the answer asks to wait and ends the connection; a
 * good token still passes.
 */
export const createGuessGuard = (clock: Clock, events: Events) => {
  const countFailure = createTally(clock, WINDOW_MS);
  return ({ peer, endConnection, ...attempt }: Stranger, advice: string): GatewayError => {
    const { address, network } = peer;
    const { since, count } = countFailure(network);
    const isGuessing = count > FREE_FAILURES;
    events.authFailed({ ...attempt, address, logged: !isGuessing });
    if (!isGuessing) return new GatewayError("unauthenticated", advice);
    endConnection?.();
    return new GatewayError("unauthenticated", advice, { retryAfterMs: since + WINDOW_MS - clock.monotonic() });
  };
};

export type GuessGuard = ReturnType<typeof createGuessGuard>;

/** The owner of a request's token, if nobody on the way could read it. `takes` is a sentence about the token of the door. */
export const authenticate = <Who>(
  call: WireCall,
  { identify, guard }: { identify: (hash: Buffer) => Who | undefined; guard: GuessGuard },
  takes: string,
  shownPath = () => call.path,
): Who => {
  requireTls(call.peer);
  const hash = tokenHashOf(call.req);
  const caller = hash && identify(hash);
  if (caller !== undefined) return caller;
  const { surface, peer, requestId } = call;
  const endConnection = () => call.endConnection();
  throw guard({ surface, peer, requestId, path: shownPath(), endConnection }, adviceOf(takes, call.req));
};
