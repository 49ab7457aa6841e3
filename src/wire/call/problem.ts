import type { ServerResponse } from "node:http";
import { errors } from "#generated/errors.ts";
import type { GatewayError } from "#kit/errors.ts";
import { endSoon } from "#wire/http/outbox.ts";

/** The wait that a caller is told before it tries again, if the error names no other. */
const RETRY_MS = 1_000;

/** The time after which the same request may succeed, in whole milliseconds; undefined where time does not help. */
export const retryOf = ({ name, extra: { retryAfterMs } }: GatewayError): number | undefined =>
  retryAfterMs === undefined ? (errors[name].retry ? RETRY_MS : undefined) : Math.ceil(retryAfterMs);

/** An error as RFC 9457 writes it. An internal one says nothing of its cause. */
export const problemOf = (error: GatewayError, requestId: string) => {
  const { status, title } = errors[error.name];
  const { errors: places, turnId } = error.extra;
  const retryAfterMs = retryOf(error);
  return {
    type: `urn:agent-gateway:error:${error.name}`,
    title,
    status,
    ...(error.detail !== undefined && error.name !== "internal" && { detail: error.detail }),
    ...(places && { errors: places }),
    ...(turnId !== undefined && { turn_id: turnId }),
    ...(retryAfterMs !== undefined && { retry_after_ms: retryAfterMs }),
    request_id: requestId,
  };
};

const seconds = (ms: number): number => Math.max(1, Math.ceil(ms / 1_000));

/** The headers that go with an error. */
export const headersOf = (error: GatewayError): Record<string, string> => {
  const { name, extra } = error;
  const retryAfterMs = retryOf(error);
  return {
    ...(retryAfterMs !== undefined && { "retry-after": String(seconds(retryAfterMs)) }),
    ...(extra.rateLimit && {
      ratelimit: `"token";r=0;t=${seconds(retryAfterMs ?? 0)}`,
      "ratelimit-policy": `"token";q=${extra.rateLimit.maxRequests};w=${seconds(extra.rateLimit.windowMs)}`,
    }),
    ...(extra.allow !== undefined && { allow: extra.allow }),
    ...(extra.replayed === true && { "idempotent-replayed": "true" }),
    ...((name === "unauthenticated" || name === "key-expired") && {
      "www-authenticate": 'Bearer realm="agent-gateway"',
    }),
  };
};

export const sendProblem = (res: ServerResponse, error: GatewayError, requestId: string): void => {
  const headers = { "content-type": "application/problem+json", "x-request-id": requestId, ...headersOf(error) };
  sendBody(res, errors[error.name].status, headers, JSON.stringify(problemOf(error, requestId)));
};

/** Sends an answer that is there as a whole. */
export const sendBody = (
  res: ServerResponse,
  status: number,
  headers: Readonly<Record<string, string>>,
  body: string | Buffer,
): void => {
  res.writeHead(status, { "content-length": Buffer.byteLength(body), ...headers });
  endSoon(res, body);
};
