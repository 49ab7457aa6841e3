import { connectionError, GatewayError, isWorthRetrying } from "./error.ts";
import type { CallOptions, Settings } from "./settings.ts";

interface Attempts {
  operation: string;
  /** A second call has no further effect. */
  isRepeatable: boolean;
  idempotencyKey?: string | undefined;
}

/** A longer pause is not waited for: the call fails with the error. */
const LONGEST_PAUSE_MS = 60_000;

/** Makes a call, and retries it if that is useful and safe. Every failure is thrown as a GatewayError, except the caller's own abort. */
export async function attempt<Result>(
  settings: Settings,
  { operation, isRepeatable, idempotencyKey }: Attempts,
  { signal, timeoutMs = settings.timeoutMs, maxRetries = settings.maxRetries }: CallOptions,
  call: (signal: AbortSignal) => Promise<Result>,
): Promise<Result> {
  for (let tried = 0; ; tried += 1) {
    signal?.throwIfAborted();
    // A stream continues after its call: the timeout ends once the answer starts.
    const timeout = new AbortController();
    const timer = setTimeout(() => timeout.abort(), timeoutMs);
    try {
      return await call(signal ? AbortSignal.any([signal, timeout.signal]) : timeout.signal);
    } catch (cause) {
      if (signal?.aborted) throw signal.reason;
      const isLate = timeout.signal.aborted;
      const error = isLate ? timeoutError(operation, timeoutMs) : connectionError(cause, operation, settings.url);
      error.idempotencyKey = idempotencyKey;
      const pauseMs = error.retryAfterMs ?? 500 * 2 ** tried * (0.75 + Math.random() / 2);
      if (tried >= maxRetries || !isWorthRetrying(error, isRepeatable) || pauseMs > LONGEST_PAUSE_MS) throw error;
      await pause(pauseMs, signal);
    } finally {
      clearTimeout(timer);
    }
  }
}

function timeoutError(operation: string, timeoutMs: number): GatewayError {
  return new GatewayError("timeout", "Timeout", {
    operation,
    detail: `No answer came within ${timeoutMs} ms. The call may still take effect.`,
  });
}

/** Waits, or throws the signal's reason. */
export function pause(ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const abort = () => {
      clearTimeout(timer);
      reject(signal?.reason);
    };
    const timer = setTimeout(() => {
      signal?.removeEventListener("abort", abort);
      resolve();
    }, ms);
    signal?.addEventListener("abort", abort, { once: true });
  });
}
