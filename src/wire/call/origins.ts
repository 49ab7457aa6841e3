import type { IncomingMessage } from "node:http";
import { GatewayError } from "#kit/errors.ts";
import type { WireCall } from "./call.ts";

/** Refuses a request with two hosts or two Authorization headers: a proxy in front may have used the other one. */
export function requireOneOfEach({ rawHeaders }: Pick<IncomingMessage, "rawHeaders">): void {
  let hosts = 0;
  let tokens = 0;
  for (let n = 0; n < rawHeaders.length; n += 2) {
    const { length } = rawHeaders[n] as string;
    if (length === "host".length && isNamed(rawHeaders[n] as string, "host")) hosts++;
    else if (length === "authorization".length && isNamed(rawHeaders[n] as string, "authorization")) tokens++;
  }
  if (hosts > 1) throw new GatewayError("invalid-request", "The request has two hosts. Send one Host.");
  if (tokens > 1) throw new GatewayError("invalid-request", "The request has two Authorization headers. Send one.");
}

function isNamed(sent: string, name: string): boolean {
  return sent.toLowerCase() === name;
}

const LOOPBACK = /^(?:localhost|127(?:\.\d{1,3}){3}|\[::1\])(?::\d{1,5})?$/i;

/** The hosts and the pages that a listener answers. */
export type Origins = {
  /** A Host header can mean us. On a loopback listener only this machine's names can, and names that the configuration allows. */
  isOwnHost: (host: string) => boolean;
  /**
   * Refuses pages of other sites. An Origin must be our own or an allowed one; on a loopback listener the Host must be this machine's too, because a
   * foreign name that resolves to this machine would make its page our own.
   */
  guardHost: (req: IncomingMessage) => void;
  /** The request is from a page of another origin that may call the gateway. Only such a page gets CORS headers. */
  isPage: (req: IncomingMessage) => boolean;
};

export function createOrigins(
  allowedOrigins: readonly string[],
  { loopback, tls }: { loopback: boolean; tls: boolean },
): Origins {
  const origins = new Set(allowedOrigins.map((origin) => origin.toLowerCase()));
  const hosts = new Set([...origins].map((origin) => origin.replace(/^https?:\/\//, "")));
  const isOwnHost = (host: string) => !loopback || LOOPBACK.test(host) || hosts.has(host.toLowerCase());
  const isOwn = (origin: string, host: string) => origin === `${tls ? "https" : "http"}://${host.toLowerCase()}`;
  return {
    isOwnHost,
    guardHost({ headers: { host = "", origin } }) {
      if (!isOwnHost(host)) {
        const words = "The Host is not this machine's. Name its origin in gateway.allowedOrigins.";
        throw new GatewayError("origin-not-allowed", words);
      }
      const given = origin?.toLowerCase();
      if (given === undefined || isOwn(given, host) || origins.has(given)) return;
      throw new GatewayError("origin-not-allowed", "The page's origin is not in gateway.allowedOrigins.");
    },
    isPage({ headers: { host = "", origin = "" } }) {
      const given = origin.toLowerCase();
      return origins.has(given) && !isOwn(given, host);
    },
  };
}

/** The headers of our answers that a page cannot read without permission. */
const EXPOSED =
  "Allow, Deprecation, Idempotent-Replayed, RateLimit, RateLimit-Policy, Retry-After, WWW-Authenticate, X-Request-Id, X-Should-Retry";
const METHODS = "GET, POST, DELETE";
const TAKEN = "Authorization, Content-Type, Idempotency-Key, Last-Event-ID, Traceparent";
const VARY = "Origin, Access-Control-Request-Headers, Access-Control-Request-Private-Network";
/** A browser asks again after two hours, the longest that all of them keep an answer. */
const MAX_AGE_S = "7200";
const HEADER_NAMES = /^[\w!#$%&'*+.^`|~-]+(?:[ \t]*,[ \t]*[\w!#$%&'*+.^`|~-]+)*$/;

/** Lets a page of another origin read the answer, also if it is an error. Never with cookies: there are none. */
export function showToPage({ req, res }: WireCall): void {
  res.setHeader("access-control-allow-origin", req.headers.origin as string);
  res.setHeader("access-control-expose-headers", EXPOSED);
  res.setHeader("vary", "Origin");
}

/** True if a browser asks, on behalf of a page, which requests the page may send. The browser sends no token with it. */
export function isPreflight({ method, headers }: IncomingMessage): boolean {
  return method === "OPTIONS" && headers["access-control-request-method"] !== undefined;
}

/**
 * Lists the methods and headers that a page may send: the same at every path, and every header that it asks for. Clients bring
 * names of their own (`x-stainless-…` is OpenAI's), and a header that we do not know means nothing to us.
 */
export function answerPreflight(call: WireCall): void {
  const { req, res, requestId } = call;
  call.line.reached("preflight");
  res.setHeader("vary", VARY);
  res.writeHead(204, {
    "access-control-allow-methods": METHODS,
    "access-control-allow-headers": wantedOf(req),
    "access-control-max-age": MAX_AGE_S,
    "x-request-id": requestId,
    ...(req.headers["access-control-request-private-network"] === "true" && LOCAL),
  });
  res.end();
}

/** The page is on the internet and the gateway is not: a configuration that allows the page's origin allows this, too. */
const LOCAL = { "access-control-allow-private-network": "true" };

function wantedOf({ headers }: IncomingMessage): string {
  const wanted = headers["access-control-request-headers"];
  return typeof wanted === "string" && HEADER_NAMES.test(wanted) ? wanted : TAKEN;
}
