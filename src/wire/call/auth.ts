import type { IncomingMessage } from "node:http";
import type { Clock } from "#kit/clock.ts";
import { GatewayError } from "#kit/errors.ts";
import { hashOf } from "#kit/secrets.ts";
import type { Events } from "#observe/events.ts";
import { requireTls } from "./address.ts";
import type { CallParts, WireCall } from "./call.ts";
import { createTally } from "./rate-limit.ts";

/** The token of an Authorization header; undefined when there is none of the form `Bearer <token>`. */
export function bearerOf(req: IncomingMessage): string | undefined {
  const header = req.headers.authorization;
  if (header === undefined || header.length < 8 || header.slice(0, 7).toLowerCase() !== "bearer ") return undefined;
  return header.slice(7).trim() || undefined;
}

const MOST_TOKENS = 256;
const MOST_CHARS = 256;
const hashes = new Map<string, Buffer>();

/**
 * The hash of a token. The newest tokens are cached, because callers send the same one with each request. The duration of a look-up reveals nothing:
 * it uses a hash with a secret seed, and compares only if this hash is equal.
 */
function rememberedHashOf(token: string): Buffer {
  const known = hashes.get(token);
  if (known) return known;
  const hash = hashOf(token);
  if (hashes.size >= MOST_TOKENS) hashes.clear();
  if (token.length <= MOST_CHARS) hashes.set(token, hash);
  return hash;
}

/** The hash of the token that a request carries; undefined when it carries none. */
export function tokenHashOf(req: IncomingMessage): Buffer | undefined {
  const token = bearerOf(req);
  return token === undefined ? undefined : rememberedHashOf(token);
}

/** The hash of the token in `x-gateway-token`, for use behind a proxy that needs Authorization for itself. */
export function gatewayTokenHashOf({ headers }: IncomingMessage): Buffer | undefined {
  const token = headers["x-gateway-token"] as string | undefined;
  return token ? rememberedHashOf(token) : undefined;
}

const WINDOW_MS = 60_000;
const FREE_FAILURES = 20;

/** Headers in which people put a token, and which not every door reads. */
const ELSEWHERE = ["x-api-key", "api-key", "apikey", "x-auth-token", "x-access-token", "x-token", "x-gateway-token"];

/** Schemes that a request may name. Any other word could be a token, and is not repeated. */
const SCHEMES = ["Basic", "Digest", "Negotiate", "NTLM", "Token", "ApiKey", "Key", "HMAC", "OAuth", "AWS4-HMAC-SHA256"];

const NONE_VALID = "The request has none, or one that is not valid here.";

/**
 * Names the token that a surface takes. A missing token, a wrong one and one of another surface get the same text. Facts that the sender can
 * see without a token are added: a header that this kind of door does not read, another scheme, no scheme.
 */
export function adviceOf(takes: string, { headers }: IncomingMessage): string {
  const other = ELSEWHERE.find((name) => headers[name] !== undefined && !takes.includes(name));
  if (other !== undefined) return `${takes} You sent \`${other}\`, which this path does not read.`;
  const { authorization, "x-gateway-token": token } = headers;
  const isElsewhere = token !== undefined && takes.includes("x-gateway-token");
  const fault = authorization === undefined || isElsewhere ? undefined : schemeFault(authorization);
  return `${takes} ${fault ?? NONE_VALID}`;
}

function schemeFault(authorization: string): string | undefined {
  const [first = "", ...rest] = authorization.trim().split(/ +/);
  const scheme = first.toLowerCase();
  if (scheme === "bearer") return rest.length === 0 ? "You sent `Bearer` without a token." : undefined;
  const named = SCHEMES.find((one) => one.toLowerCase() === scheme);
  return named === undefined
    ? "You sent an Authorization header that does not begin with `Bearer`."
    : `You sent the scheme \`${named}\`.`;
}

/**
 * Counts failed authentications by network, logs them, and makes the refusal. Past 20 a minute the answer asks to wait and ends the connection; a
 * good token still passes.
 */
export function createGuessGuard(clock: Clock, events: Events): CallParts["guard"] {
  const countFailure = createTally(clock, WINDOW_MS);
  return (call, advice, path, mapping) => {
    const { requestId } = call;
    const { surface } = call.line;
    const { address, network } = call.peer;
    const { since, count } = countFailure(network);
    const isGuessing = count > FREE_FAILURES;
    events.authFailed({ surface, requestId, path, mapping, address, logged: !isGuessing });
    if (!isGuessing) return new GatewayError("unauthenticated", advice);
    call.endConnection();
    return new GatewayError("unauthenticated", advice, { retryAfterMs: since + WINDOW_MS - clock.monotonic() });
  };
}

type AuthOptions = {
  /** The path that a refusal shows, if not the call's own. */
  shownPath?: (call: WireCall) => string;
  /** Finds the hash of the token, if not in Authorization. */
  hashIn?: (req: IncomingMessage) => Buffer | undefined;
};

/** The owner of a request's token, if no third party on the way could read it. `takes` is a sentence about the token of the door. */
export function authenticate<Who>(
  call: WireCall,
  identify: (hash: Buffer) => Who | undefined,
  takes: string,
  options?: AuthOptions,
): Who {
  requireTls(call.peer);
  const hash = (options?.hashIn ?? tokenHashOf)(call.req);
  call.useKey(hash);
  const caller = hash && identify(hash);
  if (caller !== undefined) return caller;
  throw call.parts.guard(call, adviceOf(takes, call.req), options?.shownPath?.(call) ?? call.path);
}
