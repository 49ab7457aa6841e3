import type { ServerResponse } from "node:http";
import { errors } from "#generated/errors.ts";
import type { GatewayError } from "#kit/errors.ts";
import { endSoon } from "#wire/http/outbox.ts";

/** The time after which a caller may retry, if the error has no other. */
const RETRY_MS = 1_000;

/** The time after which the same request may succeed, in whole milliseconds; undefined where time does not help. */
export function retryOf({ name, extra: { retryAfterMs, budget, replayed } }: GatewayError): number | undefined {
  if (retryAfterMs !== undefined) return Math.ceil(retryAfterMs);
  // The same request would get the same failure again.
  if (budget && replayed) return undefined;
  // The error of a turn may be read long after its end.
  if (budget) return Math.max(budget.resetsAt - Date.now(), 0);
  return errors[name].retry ? RETRY_MS : undefined;
}

/** An error as RFC 9457 writes it. An internal one says nothing of its cause. */
function problemOf(error: GatewayError, requestId: string) {
  const { status, title } = errors[error.name];
  const { errors: places, turnId, budget } = error.extra;
  const retryAfterMs = retryOf(error);
  return {
    type: `/docs/errors.html#${error.name}`,
    title,
    status,
    ...(error.detail !== undefined && error.name !== "internal" && { detail: error.detail }),
    ...(places && { errors: places }),
    ...(turnId !== undefined && { turn_id: turnId }),
    ...(retryAfterMs !== undefined && { retry_after_ms: retryAfterMs }),
    ...(budget && { budget: budget.name, resets_at: new Date(budget.resetsAt).toISOString() }),
    request_id: requestId,
  };
}

function seconds(ms: number): number {
  return Math.max(1, Math.ceil(ms / 1_000));
}

/** The headers that go with an error. */
function headersOf(error: GatewayError): Record<string, string> {
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
}

/** An error as the callers of a door read it. */
export type Wording = (
  error: GatewayError,
  requestId: string,
) => { type: string; body: string; headers?: Record<string, string> };

const asProblem: Wording = (error, requestId) => ({
  type: "application/problem+json",
  body: JSON.stringify(problemOf(error, requestId)),
});

/** The whole of an answer with an error. */
export function refusalOf(error: GatewayError, requestId: string, wording = asProblem) {
  const { type, body, headers } = wording(error, requestId);
  const all = { "content-type": type, "x-request-id": requestId, ...headers, ...headersOf(error) };
  return { status: errors[error.name].status, headers: all as Record<string, string>, body };
}

/** Headers of every answer except files: caches do not store it, and browsers do not guess its type. */
export const PRIVATE = { "cache-control": "no-store", "x-content-type-options": "nosniff" } as const;

/** Sends an answer that is there as a whole. */
export function sendBody(
  res: ServerResponse,
  status: number,
  headers: Readonly<Record<string, string>>,
  body: string | Buffer,
): void {
  res.writeHead(status, {
    "content-length": Buffer.byteLength(body),
    "cache-control": PRIVATE["cache-control"],
    "x-content-type-options": PRIVATE["x-content-type-options"],
    ...headers,
  });
  endSoon(res, body);
}

/** Sends an answer without a body. */
export function sendNothing(res: ServerResponse, status: number, requestId: string): void {
  res.writeHead(status, { "x-request-id": requestId, ...PRIVATE }).end();
}
