import type { ServerResponse } from "node:http";
import type { GatewayError } from "#core/errors.ts";
import { errors } from "#generated/errors.ts";

/** An error as RFC 9457 writes it. An internal one says nothing of its cause. */
export const problemOf = (error: GatewayError, requestId: string) => {
  const { status, title } = errors[error.name];
  const { errors: places, turnId, retryAfterMs } = error.extra;
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
const headersOf = ({ name, extra }: GatewayError): Record<string, string> => ({
  ...(extra.retryAfterMs !== undefined && { "retry-after": String(seconds(extra.retryAfterMs)) }),
  ...(extra.rateLimit && {
    ratelimit: `"token";r=0;t=${seconds(extra.retryAfterMs ?? 0)}`,
    "ratelimit-policy": `"token";q=${extra.rateLimit.maxRequests};w=${seconds(extra.rateLimit.windowMs)}`,
  }),
  ...(extra.allow !== undefined && { allow: extra.allow }),
  ...(extra.replayed === true && { "idempotent-replayed": "true" }),
  ...(name === "unauthenticated" && { "www-authenticate": 'Bearer realm="agent-gateway"' }),
});

export const sendProblem = (res: ServerResponse, error: GatewayError, requestId: string): void => {
  const body = JSON.stringify(problemOf(error, requestId));
  res.writeHead(errors[error.name].status, {
    "content-type": "application/problem+json",
    "content-length": Buffer.byteLength(body),
    "x-request-id": requestId,
    ...headersOf(error),
  });
  res.end(body);
};
