import type { IncomingMessage } from "node:http";
import type { WireCall } from "./call.ts";

/** The headers of our answers that a page may not read by itself. */
const EXPOSED =
  "Allow, Deprecation, Idempotent-Replayed, RateLimit, RateLimit-Policy, Retry-After, WWW-Authenticate, X-Request-Id, X-Should-Retry";
const METHODS = "GET, POST, DELETE";
const TAKEN = "Authorization, Content-Type, Idempotency-Key, Last-Event-ID, Traceparent";
const VARY = "Origin, Access-Control-Request-Headers, Access-Control-Request-Private-Network";
/** A browser asks again after two hours, the longest that all of them keep an answer. */
const MAX_AGE_S = "7200";
const HEADER_NAMES = /^[\w!#$%&'*+.^`|~-]+(?:[ \t]*,[ \t]*[\w!#$%&'*+.^`|~-]+)*$/;

/** Lets a page of another origin read what is answered, whatever that will be. Never with cookies: there are none. */
export const showToPage = ({ req, res }: WireCall): void => {
  res.setHeader("access-control-allow-origin", req.headers.origin as string);
  res.setHeader("access-control-expose-headers", EXPOSED);
  res.setHeader("vary", "Origin");
};

/** Tells whether a browser asks on a page's behalf what that may send. It does so without a token. */
export const isPreflight = ({ method, headers }: IncomingMessage): boolean =>
  method === "OPTIONS" && headers["access-control-request-method"] !== undefined;

/**
 * Says what a page may send: at every path the same, and every header that it asks for. Clients bring names of their own
 * (`x-stainless-…` is OpenAI's), and a header that we do not know means nothing to us.
 */
export const answerPreflight = (call: WireCall): void => {
  const { req, res, requestId } = call;
  call.operation = "preflight";
  res.setHeader("vary", VARY);
  res.writeHead(204, {
    "access-control-allow-methods": METHODS,
    "access-control-allow-headers": wantedOf(req),
    "access-control-max-age": MAX_AGE_S,
    "x-request-id": requestId,
    ...(req.headers["access-control-request-private-network"] === "true" && LOCAL),
  });
  res.end();
};

/** The page is the internet's and we are not: who allowed its origin allowed that, too. */
const LOCAL = { "access-control-allow-private-network": "true" };

const wantedOf = ({ headers }: IncomingMessage): string => {
  const wanted = headers["access-control-request-headers"];
  return typeof wanted === "string" && HEADER_NAMES.test(wanted) ? wanted : TAKEN;
};
