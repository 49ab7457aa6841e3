import type { IncomingHttpHeaders } from "node:http";
import { GatewayError } from "#kit/errors.ts";

/** The key in the header Idempotency-Key; undefined without one. Throws for a text that is not a key. */
export function idempotencyKeyIn(headers: IncomingHttpHeaders): string | undefined {
  const key = headers["idempotency-key"] as string | undefined;
  if (key === undefined || isIdempotencyKey(key)) return key;
  const errors = [{ pointer: "header:idempotency-key", message: "has 1 to 255 printable ASCII characters" }];
  throw new GatewayError("invalid-request", "The header Idempotency-Key has 1 to 255 printable ASCII characters.", {
    errors,
  });
}

/** 1 to 255 printable ASCII characters, no blank at either end. */
export function isIdempotencyKey(key: string): boolean {
  return /^[!-~](?:[ -~]{0,253}[!-~])?$/.test(key);
}
